"""`python -m runtime run`: inputs from .npy files, outputs to .npy files or, shortened, to the terminal."""

from __future__ import annotations

import argparse

import numpy as np

import runtime
from runtime.commands import arrays
from schema.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", action="append", required=True, metavar="[NAME=]X.npy", help="once for each input")
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]Y.npy",
        help="once for each output to keep; default: print",
    )
    parser.add_argument("--batch-size", type=int, default=None, metavar="N", help="run N samples of axis 0 at a time")
    arrays.add_threads_argument(parser)


def run(options: argparse.Namespace) -> None:
    model = runtime.load(options.model, options.threads)
    inputs = arrays.read_inputs(options.input, model.inputs)
    if options.batch_size is not None and options.batch_size < 1:
        raise InputError(f"--batch-size {options.batch_size}: it is 1 or more")
    result = model(inputs) if options.batch_size is None else model.predict(inputs, batch_size=options.batch_size)
    outputs = result if isinstance(result, dict) else {model.outputs[0].name: result}
    if options.output:
        arrays.write_outputs(options.output, outputs)
        return
    for name, array in outputs.items():
        print(f"{name}: {array.dtype} {array.shape}")
        print(np.array2string(array, threshold=100, precision=6))

"""`python -m runtime profile`: the time of each node, one after another on one thread or more."""

from __future__ import annotations

import argparse

import runtime
from runtime.commands import arrays
from runtime.commands.bench import _named
from schema.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arrays.add_input_argument(parser)
    arrays.add_threads_argument(parser)
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="timed calls (default 20)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    if options.runs < 1:
        raise InputError(f"--runs {options.runs}: it is 1 or more")
    model = runtime.load(options.model, options.threads)
    inputs = {
        **arrays.draw([i for i in model.inputs if i.name not in _named(options.input)]),
        **arrays.read_inputs(options.input, model.inputs),
    }

"""A process that loads and runs files: what a hostile one does to it is seen from outside.

    python -m tests.corpus.child FOLDER

`.xnn` files are loaded, `.tflite` files converted first.

Prints a line of JSON before and after each file. The address space is limited, so that what asks for gigabytes fails
here and not on the machine; a file that takes long ends the process with a traceback.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

import converter
import runtime
from schema import XnnError
from tests.corpus import models, tflite_tables

SECONDS = 60  # for one file, on a machine that does other things as well
MEMORY_LIMIT = 8 << 20  # bytes that the tensors of a run may take
ITERATION_LIMIT = 200  # of the loops of a run
ADDRESS_SPACE = 2 << 30  # beyond what the process has when it starts
INPUT_BYTES = 1 << 20  # models whose inputs are declared larger are not run: it is the caller who makes inputs


def inputs_of(model: runtime.Model, unknown: int = 2) -> list[np.ndarray] | None:
    """Arrays of small numbers that the model accepts; None where it declares large ones."""
    arrays = []
    for info in model.inputs:
        shape = tuple(unknown if d is None else d for d in info.shape or ())
        if np.prod([max(d, 1) for d in shape], dtype=float) * info.dtype.itemsize > INPUT_BYTES:
            return None
        numbers = np.arange(int(np.prod(shape, dtype=np.int64)))
        numbers = (
            numbers % 7 - 2 if info.dtype.kind == "f" else numbers % 3 + 1
        )  # indices and divisors among the latter
        arrays.append(numbers.astype(info.dtype).reshape(shape))
    return arrays


def attempt(data: bytes, foreign: bool = False) -> str:
    """What became of one file: "ran", "refused: ..." by the loader or the converter, "stopped: ..." by the engine.

    foreign: it is no `.xnn` file.
    """
    try:
        data = converter.convert(data).bytes if foreign else data
        model = runtime.load(data, threads=1, memory_limit=MEMORY_LIMIT, iteration_limit=ITERATION_LIMIT)
    except XnnError as error:
        return f"refused: {type(error).__name__}: {error}"
    try:
        arrays = inputs_of(model)
        if arrays is not None:
            model(*arrays)
    except XnnError as error:
        return f"stopped: {type(error).__name__}: {error}"
    return "ran"


def main(folder: str) -> None:
    for data in models.files().values():  # kernels are compiled and loaded, and numpy's own buffers made
        assert attempt(data) == "ran"
    paths = sorted(Path(folder).iterdir())
    if any(path.suffix == ".tflite" for path in paths):
        assert attempt(tflite_tables.network().pack(), foreign=True) == "ran"
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESS_SPACE,) * 2)
    before = peak()
    for path in paths:
        say(file=path.name)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        say(file=path.name, outcome=attempt(path.read_bytes(), path.suffix == ".tflite"), grown=peak() - before)
    faulthandler.cancel_dump_traceback_later()


def peak() -> int:
    """Most bytes of memory that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

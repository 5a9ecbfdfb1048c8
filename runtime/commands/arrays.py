"""Arrays of the command line: `name=file.npy` arguments, and inputs drawn where none are given."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from runtime.signature import TensorInfo
from schema.command_line import replacing
from schema.errors import InputError

UNKNOWN_SIZE = 224  # height or width of a drawn image whose model leaves it open


def split(argument: str) -> tuple[str | None, Path]:
    """`name=path` or just `path`."""
    name, equals, path = argument.partition("=")
    return (name, Path(path)) if equals else (None, Path(argument))


def load(path: Path) -> np.ndarray:
    """The array of a .npy file. Raises InputError for anything else (pickled objects are not loaded)."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (ValueError, EOFError, OSError):
        raise InputError(f"{path} is not a .npy file of numbers: write it with numpy.save") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an archive of several arrays: give each as name=file.npy")
    return array


def read_inputs(arguments: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, np.ndarray]:
    """The arrays of `--input` arguments by input name. One without a name is for the first input that none names."""
    pairs = [split(argument) for argument in arguments]
    named = {name for name, _ in pairs if name is not None}
    free = [info.name for info in infos if info.name not in named]
    arrays: dict[str, np.ndarray] = {}
    for name, path in pairs:
        if name is None:
            if not free:
                raise InputError(f"{path} is one input too many: the model takes {[i.name for i in infos]}")
            name = free.pop(0)
        if name in arrays:
            raise InputError(f"input '{name}' is given twice")
        arrays[name] = load(path)
    return arrays


def write_outputs(arguments: Sequence[str], outputs: Mapping[str, np.ndarray]) -> None:
    """Save outputs as `--output` arguments say: `name=file.npy`, or files for the outputs in their order."""
    pairs = [split(argument) for argument in arguments]
    named = {name for name, _ in pairs if name is not None}
    free = [name for name in outputs if name not in named]
    for name, path in pairs:
        if name is None:
            if not free:
                raise InputError(f"{path} is one output too many: the model has {list(outputs)}")
            name = free.pop(0)
        if name not in outputs:
            raise InputError(f"no output is called '{name}': there are {list(outputs)}")
        with replacing(path) as file:
            np.save(file, outputs[name])


def draw(infos: Sequence[TensorInfo], seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded inputs for measuring: batch 1, standard normal or uniform integers."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for info in infos:
        if info.shape is None:
            raise InputError(f"input {info}: its rank is unknown; give an array with --input {info.name}=x.npy")
        shape = tuple(d if d is not None else (1 if axis == 0 else UNKNOWN_SIZE) for axis, d in enumerate(info.shape))
        if info.dtype.kind == "f":
            arrays[info.name] = rng.standard_normal(shape).astype(info.dtype)
        elif info.dtype.kind == "b":
            arrays[info.name] = rng.integers(0, 2, shape).astype(bool)
        else:
            high = np.iinfo(info.dtype).max if info.scale is not None else 1
            low = np.iinfo(info.dtype).min if info.scale is not None else 0
            arrays[info.name] = rng.integers(low, high, shape, dtype=info.dtype, endpoint=True)
    return arrays


def gather(arguments: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, np.ndarray]:
    """The given inputs, and drawn ones for the rest."""
    given = read_inputs(arguments, infos)
    return draw([info for info in infos if info.name not in given]) | given


def runs_argument(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of runs, 1 or more")
    return int(text)


def add_input_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]X.npy", help="an input; drawn where not given"
    )


def threads_argument(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of threads, 1 or more")
    return int(text)


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=threads_argument, default=None, metavar="N", help="default: what the machine offers"
    )

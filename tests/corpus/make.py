"""Writes the corpus of hostile files: the same bytes each time.

    python -m tests.corpus.make FOLDER [--mutations N]

FOLDER/broken holds files that must be refused, FOLDER/expected.json what the refusal must say (regular expressions);
FOLDER/mutated holds mutations of sound models, which may run or be refused; FOLDER/tflite holds `.tflite` files that
must be refused.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from tests.corpus import binary, graphs, mutations, tables, tflite_graphs, tflite_tables


def broken() -> dict[str, tuple[bytes, str]]:
    """name -> (file, what the FormatError must say)."""
    return binary.cases() | tables.CASES | graphs.CASES


def broken_tflite() -> dict[str, tuple[bytes, str]]:
    """The same of `.tflite` files; the error may be an UnsupportedError."""
    return tflite_tables.CASES | tflite_graphs.CASES


def write(folder: Path, files: Mapping[str, bytes], suffix: str = ".xnn") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / f"{name}{suffix}").write_bytes(data)


def make(folder: Path, each: int = 3) -> None:
    """each: mutations of each model."""
    cases = broken()
    write(folder / "broken", {name: data for name, (data, _) in cases.items()})
    expected = {f"{name}.xnn": pattern for name, (_, pattern) in cases.items()}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    write(folder / "mutated", mutations.mutated(each))
    write(folder / "tflite", {name: data for name, (data, _) in broken_tflite().items()}, ".tflite")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutations", type=int, default=3, help="of each sound model")
    arguments = parser.parse_args()
    make(arguments.folder, arguments.mutations)

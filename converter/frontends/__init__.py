"""Readers of foreign formats, each giving the same schema.Graph.

A reader is a function `read(source, signature=None, custom_objects=None) -> Graph`. Ours are modules here, named
after the framework; others announce themselves in the entry-point group "xnn.frontends", under the name of the file
suffix that they read ("onnx"). Each is imported only when a source needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from schema.errors import InputError, UnsupportedError
from schema.graph import Graph

GROUP = "xnn.frontends"
TENSORFLOW = "converter.frontends.tensorflow"
TFLITE = "converter.frontends.tflite"
SUFFIXES = {".keras": TENSORFLOW, ".h5": TENSORFLOW, ".hdf5": TENSORFLOW, ".tflite": TFLITE}
TFLITE_IDENTIFIER = b"TFL3"
KNOWN = "a SavedModel folder, a .keras, .h5 or .tflite file"


def read(source: Any, signature: str | None = None, custom_objects: Mapping[str, Any] | str | None = None) -> Graph:
    """The graph of a model in a file, a folder, or in memory.

    Raises InputError for a path where nothing is, UnsupportedError for a format that nothing here reads, and what the
    reader raises.
    """
    return reader_of(source)(source, signature, custom_objects)


def reader_of(source: Any) -> Callable[..., Graph]:
    """The function that reads the source."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return import_module(TFLITE).read
    if not isinstance(source, (str, os.PathLike)):
        return import_module(TENSORFLOW).read
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path} does not exist: give {KNOWN}")
    if path.is_dir():
        return import_module(TENSORFLOW).read
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return import_module(SUFFIXES[suffix]).read
    for entry in entry_points(group=GROUP):
        if f".{entry.name}" == suffix:
            return entry.load()
    if path.is_file() and _identifier(path) == TFLITE_IDENTIFIER:
        return import_module(TFLITE).read
    if path.name == "saved_model.pb":
        raise UnsupportedError(f"{path} is part of a SavedModel: give its folder, {path.parent}")
    raise UnsupportedError(f"{path}: nothing here reads {suffix or 'such'} files; give {KNOWN}")


def _identifier(path: Path) -> bytes:
    """What a FlatBuffers file says it is."""
    with path.open("rb") as file:
        return file.read(8)[4:]

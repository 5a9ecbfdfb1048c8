"""The TFLite front end: `.tflite` files to a schema.Graph, with the quantization that they have.

The package `tflite` (extra `tflite`) tells the names of operators and enums; TensorFlow is not needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from converter.frontends.tflite.package import package
from schema.errors import InputError, XnnError
from schema.graph import Graph


def read(source: Any, signature: str | None = None, custom_objects: Mapping[str, Any] | str | None = None) -> Graph:
    """The graph of a `.tflite` file, given as its path or its bytes.

    signature: the name of one of the file's signatures, by default "serving_default" or the only one. Sizes that the
    file leaves open (shape_signature -1) stay unknown.
    Raises XnnErrors that name the file and the place: FormatError for a damaged file, UnsupportedError for an operator
    that xnn does not have.
    """
    package()
    from converter.frontends.tflite import file, graph_reader

    if custom_objects is not None:
        raise InputError("custom_objects are for .keras and .h5 files")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return graph_reader.read(file.parse(source), signature)
    path = Path(os.fspath(source))
    try:
        return graph_reader.read(file.parse(path.read_bytes()), signature)
    except XnnError as error:
        raise type(error)(f"{path}: {error}") from None

"""The language that the other packages speak: the file format, the ops with their normative references, and the
errors.
"""

from __future__ import annotations

import os

from schema.errors import (
    CalibrationError,
    ConversionError,
    ExecutionError,
    FormatError,
    InputError,
    LostStructureError,
    MemoryLimitError,
    ShapeError,
    UnsupportedError,
    XnnError,
)
from schema.graph import Constant, Graph, Model, Node, Tensor, TensorType
from schema.quantization import Quantization

__all__ = [
    "CalibrationError",
    "Constant",
    "ConversionError",
    "ExecutionError",
    "FormatError",
    "Graph",
    "InputError",
    "LostStructureError",
    "MemoryLimitError",
    "Model",
    "Node",
    "Quantization",
    "ShapeError",
    "Tensor",
    "TensorType",
    "UnsupportedError",
    "XnnError",
    "read",
    "reseal",
    "verify",
    "write",
]


def read(source: bytes | str | os.PathLike) -> Model:
    """The verified model of an `.xnn` file (its bytes or its path). Raises FormatError."""
    from schema import reader

    return reader.read(source)


def verify(source: bytes | str | os.PathLike) -> None:
    """Raise FormatError, with the place, when `source` is not a file that the engine may run."""
    from schema import reader

    reader.verify(source)


def write(model: Model, flatbuffer: bool = False) -> bytes:
    """The bytes of a model's `.xnn` file.

    flatbuffer: metadata as a FlatBuffer even where columns are smaller, for those who read it by flatc's code.
    """
    from schema import writer

    return writer.write(model, flatbuffer)


def reseal(data: bytes) -> bytes:
    """The same file with right checksums."""
    from schema import container

    return container.reseal(data)

"""Shapes, and ops that only change them or join tensors."""

from __future__ import annotations

import numpy as np

from converter.frontends.tflite.reading import Reading, reads
from schema.errors import FormatError, UnsupportedError

INT32 = np.dtype(np.int32)


@reads("RESHAPE", options="ReshapeOptions")
def reshape(reading: Reading) -> None:
    """The shape is an operand, or (in old files, and where the operand is no vector) an option."""
    x, shape = reading.operands(1, 2)
    if shape is None or shape.dtype != INT32 or len(reading.shape(shape)) != 1:
        stored = reading.options["new_shape"]
        if stored is None:
            raise FormatError("neither an operand nor an option says what shape")
        sizes = [] if stored.tolist() == [0] else stored  # how old files write a scalar's shape
        shape = reading.constant(sizes, INT32)
    reading.emit("RESHAPE", [x, shape])


@reads("SQUEEZE", options="SqueezeOptions")
def squeeze(reading: Reading) -> None:
    axes = reading.options["squeeze_dims"]
    reading.emit("SQUEEZE", reading.operands(1), axes=() if axes is None else tuple(axes.tolist()))


@reads("SHAPE", options="ShapeOptions")
def shape(reading: Reading) -> None:
    reading.emit("SHAPE", reading.operands(1), dtype=reading.output().dtype)


@reads("CONCATENATION", options="ConcatenationOptions")
def concatenation(reading: Reading) -> None:
    reading.no_activation()
    reading.emit("CONCATENATION", reading.inputs, axis=reading.options["axis"])


@reads("STRIDED_SLICE", options="StridedSliceOptions")
def strided_slice(reading: Reading) -> None:
    x, begin, end, strides = reading.operands(4)
    if reading.options["offset"]:
        end = _sum(reading, begin, end)
    masks = {name: value for name, value in reading.options.items() if name != "offset"}
    reading.emit("STRIDED_SLICE", [x, begin, end, strides], **masks)


def _sum(reading: Reading, begin, end):
    """Where a slice ends whose `end` counts from its beginning."""
    if not begin.is_constant or not end.is_constant or begin.shape != end.shape:
        raise UnsupportedError("a slice whose end is an offset from a computed beginning is not supported")
    return reading.constant(begin.value + end.value, end.dtype)

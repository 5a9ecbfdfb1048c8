"""Shapes as values, and ops that change a tensor's shape alone."""

from __future__ import annotations

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from converter.frontends.tensorflow.ops.sizes import INT32
from schema.errors import UnsupportedError


@reads("Reshape")
def reshape(reading: Reading) -> Result:
    return reading.emit("RESHAPE", *reading.tensors())


@reads("Squeeze")
def squeeze(reading: Reading) -> Result:
    """Without axes, all of size 1 go; which ones must be known now."""
    x, axes = reading.tensor(0), reading.attribute("squeeze_dims")
    if not axes:
        shape = reading.shape(x)
        if shape is None or None in shape:
            raise UnsupportedError("which axes to squeeze depends on the input's size; name them")
        axes = [axis for axis, number in enumerate(shape) if number == 1]
        if not axes:
            return x
    return reading.emit("SQUEEZE", x, axes=tuple(int(axis) for axis in axes))


@reads("ExpandDims")
def expand_dims(reading: Reading) -> Result:
    axis = reading.constant(reading.integer(1, "the axis"), np.int32)
    return reading.emit("EXPAND_DIMS", reading.tensor(0), axis)


@reads("Shape")
def shape(reading: Reading) -> Result:
    return reading.emit("SHAPE", reading.tensor(0), dtype=reading.attribute("out_type"))


@reads("ShapeN")
def shapes(reading: Reading) -> Result:
    return [reading.emit("SHAPE", x, dtype=reading.attribute("out_type")) for x in reading.tensors()]


@reads("Size")
def size(reading: Reading) -> Result:
    sizes = reading.emit("SHAPE", reading.tensor(0), dtype=reading.attribute("out_type"))
    return reading.emit("REDUCE_PROD", sizes, reading.constant([0], np.int32), keep_dims=False)


@reads("Rank")
def rank(reading: Reading) -> Result:
    return reading.constant(reading.rank(reading.tensor(0)), np.int32)


@reads("Range")
def range_(reading: Reading) -> Result:
    return reading.emit("RANGE", *reading.tensors())


@reads("Fill")
def fill(reading: Reading) -> Result:
    return reading.emit("FILL", *reading.tensors())


@reads("BroadcastTo")
def broadcast_to(reading: Reading) -> Result:
    return reading.emit("BROADCAST_TO", *reading.tensors())


@reads("BroadcastArgs")
def broadcast_args(reading: Reading) -> Result:
    """The shape that two shapes broadcast to: the larger of sizes, since the other one is 1 or equal."""
    a, b = reading.tensors()
    ranks = [(reading.shape(x) or (None,))[0] for x in (a, b)]
    if None in ranks:
        raise UnsupportedError("shapes whose number of axes is unknown are not supported")
    longest = max(ranks)  # type: ignore[type-var]
    padded = []
    for x, count in zip((a, b), ranks, strict=True):
        ones = reading.constant([1] * (longest - count), x.dtype)  # type: ignore[operator]
        padded.append(x if count == longest else reading.emit("CONCATENATION", ones, x, axis=0))
    return reading.emit("MAXIMUM", *padded)


@reads("InvertPermutation")
def invert_permutation(reading: Reading) -> Result:
    return reading.constant(np.argsort(reading.value(0, "the permutation")), INT32)

"""STRIDED_SLICE: (x, begin int[n], end int[n], strides int[n]) -> x[begin:end:stride, ...] (tf.strided_slice).

Entry i of the operands speaks of one axis; bit i of a mask changes it, in this order of precedence: ellipsis_mask: it
stands for all axes that no other entry names; new_axis_mask: it adds an axis of 1; shrink_axis_mask: it picks index
begin[i] and drops the axis; begin_mask, end_mask: from the first, to the last element. Axes after the last entry are
kept whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import StridedSliceAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge, steps


class Axis(NamedTuple):
    """What becomes of one axis. kind: "slice", "whole", "new" or "shrink"; entry: where the operands speak of it."""

    kind: str
    entry: int = -1
    begin_masked: bool = False
    end_masked: bool = False


class StridedSlice(Op):
    name = "STRIDED_SLICE"
    Attributes = StridedSliceAttributes
    inputs = (4, 4)

    @classmethod
    def check(cls, attributes):
        mask = attributes.ellipsis_mask
        require(mask & (mask - 1) == 0, "more than one ellipsis")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        operands, count = [], None
        for index, what in ((1, "begin"), (2, "end"), (3, "strides")):
            operands.append(integers(cls.name, inputs, values, index, what))
            count = merge(count, length(inputs[index], what), "lengths of begin, end and strides")
        strides = operands[2]
        require(strides is None or 0 not in strides, f"strides {strides}")
        if count is None or x.shape is None:
            return [TensorType(None, x.dtype)]
        shape: list[int | None] = []
        dims = iter(x.shape)
        for axis in axes(attributes, count, x.rank):
            if axis.kind == "new":
                shape.append(1)
                continue
            dim = next(dims)
            if axis.kind == "whole":
                shape.append(dim)
                continue
            begin, end, stride = (None if o is None else o[axis.entry] for o in operands)
            if axis.kind == "slice":
                shape.append(extent(dim, axis, begin, end, stride))
            else:
                require(stride is None or stride > 0, f"stride {stride} where one index is picked")
                if dim is not None and begin is not None:
                    require(-dim <= begin < dim, f"index {begin} is outside of an axis of {dim}")
        return [TensorType(tuple(shape), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        return [np.array(x[numpy_index(attributes, x.shape, *arrays[1:])], order="C")]


def numpy_index(
    attributes: StridedSliceAttributes, shape: Sequence[int], begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> tuple:
    """What to index an array of that shape with, for the same slice."""
    operands = [[int(v) for v in np.ravel(a)] for a in (begin, end, strides)]
    picked: list[slice | int | None] = []
    dims = iter(shape)
    for axis in axes(attributes, len(operands[0]), len(shape)):
        if axis.kind == "new":
            picked.append(np.newaxis)
            continue
        dim = next(dims)
        if axis.kind == "whole":
            picked.append(slice(None))
            continue
        first, last, stride = (o[axis.entry] for o in operands)
        if axis.kind == "shrink":
            picked.append(first)
            continue
        kept = range(*bounds(dim, axis, first, last, stride), stride)
        # A negative stop would count from the end.
        picked.append(slice(kept.start, kept.stop if kept.stop >= 0 else None, stride) if kept else slice(0, 0))
    return tuple(picked)


def axes(attributes: StridedSliceAttributes, count: int, rank: int) -> list[Axis]:
    """One Axis for each axis of x, in order, and for each new axis."""

    def bit(mask: int, i: int) -> bool:
        return bool(mask >> i & 1)

    added = attributes.ellipsis_mask | attributes.new_axis_mask
    named = sum(not bit(added, i) for i in range(count))
    require(named <= rank, f"{named} axes are sliced of a tensor of rank {rank}")
    whole = [Axis("whole")] * (rank - named)
    result: list[Axis] = []
    for i in range(count):
        if bit(attributes.ellipsis_mask, i):
            result += whole
            whole = []
        elif bit(attributes.new_axis_mask, i):
            result.append(Axis("new"))
        elif bit(attributes.shrink_axis_mask, i):
            result.append(Axis("shrink", i))
        else:
            result.append(Axis("slice", i, bit(attributes.begin_mask, i), bit(attributes.end_mask, i)))
    return result + whole


def bounds(dim: int, axis: Axis, begin: int, end: int, stride: int) -> tuple[int, int]:
    """(first index, index past the last one) of a slice, clamped to the axis as TF does; past the front is -1."""
    low, high = (0, dim) if stride > 0 else (-1, dim - 1)

    def clamp(at: int) -> int:
        return min(max(at + dim if at < 0 else at, low), high)

    first, last = (low, high) if stride > 0 else (high, low)
    return (first if axis.begin_masked else clamp(begin)), (last if axis.end_masked else clamp(end))


def extent(dim: int | None, axis: Axis, begin: int | None, end: int | None, stride: int | None) -> int | None:
    """How many elements a slice keeps; None where something that matters is unknown."""
    if axis.begin_masked and axis.end_masked and stride in (1, -1):
        return dim
    begin, end = 0 if axis.begin_masked else begin, 0 if axis.end_masked else end
    if dim is None or begin is None or end is None or stride is None:
        return None
    return steps(*bounds(dim, axis, begin, end, stride), stride)

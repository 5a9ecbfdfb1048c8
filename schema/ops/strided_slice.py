"""STRIDED_SLICE: (x, begin int[n], end int[n], strides int[n]) -> x[begin:end:stride, ...].

As tf.strided_slice, all masks.

Entry i of the operands speaks of one axis; bit i of a mask changes it, in this order of precedence: ellipsis_mask: it
stands for all axes that no other entry names; new_axis_mask: it adds an axis of 1; shrink_axis_mask: it picks index
begin[i] and drops the axis; begin_mask, end_mask: from the first, to the last element. Axes after the last entry are
kept whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import StridedSliceAttributes
from schema.ops.base import Op, require
from schema.ops.operands import check_dtype, integers, length, merge


class Entry(NamedTuple):
    """What becomes of one axis. kind: "slice", "whole", "new" or "shrink"; the numbers are None where unknown."""

    kind: str
    begin: int | None = None  # None also where masked: see begin_masked
    end: int | None = None
    stride: int | None = None
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
        check_dtype(x)
        operands, count = [], None
        for index, what in ((1, "begin"), (2, "end"), (3, "strides")):
            operands.append(integers(inputs, values, index, what))
            count = merge(count, length(inputs[index], what), "lengths of begin, end and strides")
        if count is None or x.shape is None:
            return [TensorType(None, x.dtype)]
        shape: list[int | None] = []
        dims = iter(x.shape)
        for entry in entries(attributes, *(o or [None] * count for o in operands), x.rank):
            if entry.kind == "new":
                shape.append(1)
                continue
            dim = next(dims)
            if entry.kind == "whole":
                shape.append(dim)
            elif entry.kind == "shrink":
                require(entry.stride is None or entry.stride > 0, f"stride {entry.stride} where one index is picked")
                if dim is not None and entry.begin is not None:
                    require(-dim <= entry.begin < dim, f"index {entry.begin} is outside of an axis of {dim}")
            else:
                shape.append(extent(dim, entry))
        return [TensorType(tuple(shape), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        index: list = []
        dims = iter(x.shape)
        for entry in entries(attributes, *([int(v) for v in np.ravel(a)] for a in arrays[1:]), x.ndim):
            if entry.kind == "new":
                index.append(np.newaxis)
                continue
            dim = next(dims)
            if entry.kind == "whole":
                index.append(slice(None))
            elif entry.kind == "shrink":
                index.append(entry.begin)
            else:
                begin, end = bounds(dim, entry)
                index.append(slice(begin, None if end < 0 else end, entry.stride))
        return [np.array(x[tuple(index)], order="C")]


def entries(attributes: StridedSliceAttributes, begin: list, end: list, strides: list, rank: int) -> list[Entry]:
    """One Entry for each axis of x, in order, and for each new axis."""

    def bit(mask: int, i: int) -> bool:
        return bool(mask >> i & 1)

    count = len(begin)
    named = sum(not bit(attributes.ellipsis_mask | attributes.new_axis_mask, i) for i in range(count))
    require(named <= rank, f"{named} axes are sliced of a tensor of rank {rank}")
    whole = [Entry("whole")] * (rank - named)
    result: list[Entry] = []
    for i in range(count):
        if bit(attributes.ellipsis_mask, i):
            result += whole
            whole = []
        elif bit(attributes.new_axis_mask, i):
            result.append(Entry("new"))
        else:
            kind = "shrink" if bit(attributes.shrink_axis_mask, i) else "slice"
            require(strides[i] != 0, "a stride of 0")
            masked = bit(attributes.begin_mask, i), bit(attributes.end_mask, i)
            result.append(Entry(kind, begin[i], end[i], strides[i], *masked))
    return result + whole


def bounds(dim: int, entry: Entry) -> tuple[int, int]:
    """(first index, index past the last one) of a slice, clamped to the axis as TF does; past the front is -1."""
    low, high = (0, dim) if entry.stride > 0 else (-1, dim - 1)

    def clamp(at: int) -> int:
        return min(max(at + dim if at < 0 else at, low), high)

    first, last = (low, high) if entry.stride > 0 else (high, low)
    return (first if entry.begin_masked else clamp(entry.begin)), (last if entry.end_masked else clamp(entry.end))


def extent(dim: int | None, entry: Entry) -> int | None:
    """How many elements a slice keeps."""
    if entry.begin_masked and entry.end_masked and entry.stride in (1, -1):
        return dim
    unknown = (entry.begin is None and not entry.begin_masked) or (entry.end is None and not entry.end_masked)
    if dim is None or entry.stride is None or unknown:
        return None
    return len(range(*bounds(dim, entry), entry.stride))

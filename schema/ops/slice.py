"""SLICE: (x, begin int[rank], size int[rank]) -> x[begin : begin + size] per axis (tf.slice).

A size of -1 reaches to the end.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge


class Slice(Op):
    name = "SLICE"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        begin, size = integers(cls.name, inputs, values, 1, "begin"), integers(cls.name, inputs, values, 2, "size")
        rank = x.rank
        for index, what in ((1, "begin"), (2, "size")):
            rank = merge(rank, length(inputs[index], what), f"ranks of x and {what}")
        if rank is None:
            return [TensorType(None, x.dtype)]
        dims = (None,) * rank if x.shape is None else x.shape
        nothing = [None] * rank
        return [TensorType(tuple(map(extent, dims, begin or nothing, size or nothing)), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        begin, size = ([int(v) for v in np.ravel(a)] for a in arrays[1:])
        stops = [d if s == -1 else b + s for d, b, s in zip(x.shape, begin, size, strict=True)]
        return [np.array(x[tuple(map(slice, begin, stops))], order="C")]


def extent(dim: int | None, begin: int | None, size: int | None) -> int | None:
    """How many elements one axis keeps."""
    require(begin is None or begin >= 0, f"begin {begin} is negative")
    require(size is None or size >= -1, f"size {size} is below -1")
    if dim is not None:
        lowest = (begin or 0) + max(size or 0, 0)
        require(lowest <= dim, f"begin {begin} and size {size} reach past an axis of {dim}")
    if size is not None and size >= 0:
        return size
    return None if dim is None or begin is None or size is None else dim - begin

"""SPLIT_V: (x, sizes int[num], axis) -> parts of those sizes along the axis (tf.split).

One size of -1 is what is left.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import SplitAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integer, integers, length, normalize_axis, require_outputs, unknown


class SplitV(Op):
    name = "SPLIT_V"
    Attributes = SplitAttributes
    inputs = (3, 3)
    outputs = None

    @classmethod
    def check(cls, attributes):
        require_outputs(attributes.num)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        count = length(inputs[1], "sizes")
        require(count in (None, attributes.num), f"{count} sizes for {attributes.num} outputs")
        sizes = integers(cls.name, inputs, values, 1, "sizes")
        axis = integer(cls.name, inputs, values, 2, "the axis")
        if axis is None or x.shape is None:
            return [TensorType(unknown(x.rank), x.dtype)] * attributes.num
        axis = normalize_axis(axis, x.rank)
        parts: list[int | None] = [None] * attributes.num
        if sizes is not None:
            parts = complete(sizes, x.shape[axis])
        return [TensorType((*x.shape[:axis], part, *x.shape[axis + 1 :]), x.dtype) for part in parts]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, axis = arrays[0], int(np.ravel(arrays[2])[0])
        ends = np.cumsum(np.array(complete([int(s) for s in np.ravel(arrays[1])], x.shape[axis]), np.int64))
        return [np.ascontiguousarray(part) for part in np.split(x, ends[:-1], axis)]


def complete(sizes: list[int], total: int | None) -> list[int | None]:
    """Sizes with the -1 replaced by what is left of the total, which they must fill."""
    require(sizes.count(-1) <= 1 and min(sizes) >= -1, f"{sizes} are no sizes: one -1 at most, the rest >= 0")
    given = sum(s for s in sizes if s != -1)
    if total is None:
        return [None if s == -1 else s for s in sizes]
    require(given <= total if -1 in sizes else given == total, f"sizes {sizes} do not fill {total}")
    return [total - given if s == -1 else s for s in sizes]

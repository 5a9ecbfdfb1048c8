"""REDUCE_MAX: (x, axes) -> the largest number over the axes.

int8 compares the integers: input and output have one scale.
"""

from __future__ import annotations

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.reduction import Reduction, lowest


class ReduceMax(Reduction):
    name = "REDUCE_MAX"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return x.max(axis=axes, keepdims=keep_dims, initial=lowest(x.dtype))

    @classmethod
    def quantized(cls, x, axes, keep_dims, given, output):
        return cls.compute(x, axes, keep_dims)

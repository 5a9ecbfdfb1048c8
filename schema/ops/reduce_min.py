"""REDUCE_MIN: (x, axes) -> the smallest number over the axes.

int8 compares the integers: input and output have one scale.
"""

from __future__ import annotations

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.reduction import Reduction, highest


class ReduceMin(Reduction):
    name = "REDUCE_MIN"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return x.min(axis=axes, keepdims=keep_dims, initial=highest(x.dtype))

    @classmethod
    def quantized(cls, x, axes, keep_dims, given, output):
        return cls.compute(x, axes, keep_dims)

"""MEAN: (x, axes) -> the mean over the axes. Integers divide toward zero, as TFLite does (reference/reduce.h)."""

from __future__ import annotations

import numpy as np

from schema.errors import ExecutionError
from schema.ops.reduction import Reduction, count, wide


class Mean(Reduction):
    name = "MEAN"

    @classmethod
    def compute(cls, x, axes, keep_dims):
        total = np.sum(x, axis=axes, keepdims=keep_dims, dtype=wide(x))
        n = count(x, axes)
        if x.dtype.kind == "f":
            return total / np.float64(n)
        if n == 0:
            raise ExecutionError("the mean of no integers")
        return np.sign(total) * (np.abs(total) // n)

"""MEAN: (x, axes) -> the mean over the axes. Integers divide toward zero, as TFLite does (reference/reduce.h).

int8: sum of x - zero_point, times s_in / s_out / n as one multiplier (QuantizedMeanOrSum of reference/reduce.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.errors import ExecutionError
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.reduction import Reduction, centred_sum, count, wide


class Mean(Reduction):
    name = "MEAN"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, axes, keep_dims):
        n = count(x, axes)
        if x.dtype.kind == "f":
            return np.sum(x, axis=axes, keepdims=keep_dims, dtype=wide(x)) / np.float64(n)
        if n == 0:
            raise ExecutionError("MEAN of no integers")
        total = np.sum(x, axis=axes, keepdims=keep_dims, dtype=np.int64)
        return np.sign(total) * (np.abs(total) // n)

    @classmethod
    def quantized(cls, x, axes, keep_dims, given, output):
        total, multiplier, zero_point = centred_sum(cls.name, x, axes, keep_dims, given, output)
        q31, shift = fixedpoint.quantize_multiplier(multiplier)
        n = max(count(x, axes), 1)
        more = min(n.bit_length() - 1, 32, 31 + shift)  # bits by which q31 grows, so that it keeps its precision
        scaled = fixedpoint.multiply_by_quantized_multiplier(total, (q31 << more) // n, shift - more)
        return fixedpoint.saturate(scaled + zero_point, x.dtype).astype(x.dtype)

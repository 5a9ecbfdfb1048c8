"""SUM: (x, axes) -> the sum over the axes.

int8: sum of x - zero_point, requantized (QuantizedMeanOrSum of TFLite reference/reduce.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.reduction import Reduction, centred_sum, wide


class Sum(Reduction):
    name = "SUM"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return np.sum(x, axis=axes, keepdims=keep_dims, dtype=wide(x))

    @classmethod
    def quantized(cls, x, axes, keep_dims, given, output):
        total, multiplier, zero_point = centred_sum(cls.name, x, axes, keep_dims, given, output)
        return fixedpoint.saturate(fixedpoint.multiply_by_real(total, multiplier) + zero_point, x.dtype).astype(x.dtype)

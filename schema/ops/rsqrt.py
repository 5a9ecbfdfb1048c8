"""RSQRT: 1 / sqrt(x).

int8: the inverse square root of x - zero_point in fixed point (TFLite kernels/elementwise.cc). Zero gives the largest
output, and so do negative numbers, which TFLite refuses.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import per_tensor
from schema.ops.elementwise import Unary
from schema.ops.fixed_point_functions import inverse_sqrt

EXTRA_BITS = 20
"""Fractional bits of the inverse square root."""


class Rsqrt(Unary):
    name = "RSQRT"

    @classmethod
    def compute(cls, x, attributes):
        return 1 / np.sqrt(x)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        value = x.astype(np.int64) - zero_point
        q31, shift = inverse_sqrt(np.maximum(value, 0))
        root = fixedpoint.multiply_by_quantized_multiplier(np.int64(1), q31, shift + EXTRA_BITS)
        q31_out, shift_out = fixedpoint.quantize_multiplier(float(1 / np.float64(np.sqrt(scale) * output_scale)))
        result = fixedpoint.multiply_by_quantized_multiplier(root, q31_out, shift_out - EXTRA_BITS) + output_zero
        return np.where(value <= 0, 127, np.clip(result, -128, 127)).astype(x.dtype)

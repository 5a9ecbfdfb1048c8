"""RSQRT: 1 / sqrt(x).

int8: the inverse square root of x - zero_point in fixed point (TFLite kernels/elementwise.cc). Zero gives the largest
output, and so do negative numbers, which TFLite refuses. int16: an interpolated table.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops import interpolated_table
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Unary
from schema.ops.fixed_point_functions import inverse_sqrt

EXTRA_BITS = 20
"""Fractional bits of the inverse square root."""


class Rsqrt(Unary):
    name = "RSQRT"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return 1 / np.sqrt(x)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        if given.dtype in WIDE:
            output_scale, _ = per_tensor(cls.name, "output", output)
            highest = np.float32(interpolated_table.HIGH) * output_scale
            entries = interpolated_table.table(
                cls.name, lambda real: np.where(real > 0, np.float32(1) / np.sqrt(real), highest), given, output
            )
            return interpolated_table.look_up(x, entries).astype(x.dtype)
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        value = x.astype(np.int64) - zero_point
        q31, shift = inverse_sqrt(np.maximum(value, 0))
        root = fixedpoint.multiply_by_quantized_multiplier(np.int64(1), q31, shift + EXTRA_BITS)
        q31_out, shift_out = fixedpoint.quantize_multiplier(float(1 / np.float64(np.sqrt(scale) * output_scale)))
        result = fixedpoint.multiply_by_quantized_multiplier(root, q31_out, shift_out - EXTRA_BITS) + output_zero
        return np.where(value <= 0, 127, np.clip(result, -128, 127)).astype(x.dtype)

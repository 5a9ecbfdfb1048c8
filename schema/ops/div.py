"""DIV: a / b, broadcasting, with a fused activation. Integers divide toward zero, as TFLite does (reference/div.h).

int8, int16: a - zero_a times the reciprocal of b - zero_b in 32-bit fixed point, requantized by s_a / (s_b * s_out)
(reference/div.h). Two things that are undefined there: quotients far below a step, for which its kernel shifts by more
than 31 bits, are 0 here; division by zero gives the end of the range that has a's sign, and 0 / 0 is 0.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.attributes import activation_range
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Arithmetic, refuse_zero
from schema.ops.fixed_point_functions import leading_sign_bits, reciprocal


class Div(Arithmetic):
    name = "DIV"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, a, b):
        if a.dtype.kind == "f":
            return a / b
        refuse_zero(cls.name, b)
        quotient = a // b
        return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        (scale_a, zero_a), (scale_b, zero_b) = (per_tensor(cls.name, "input", t) for t in given)
        scale, zero_point = per_tensor(cls.name, "output", output)
        a, b = np.broadcast_arrays(a.astype(np.int64) - zero_a, b.astype(np.int64) - zero_b)
        a, b = np.where(b < 0, -a, a), np.abs(b)
        inverse, reciprocal_shift = reciprocal(np.maximum(b, 1), 31)
        headroom = leading_sign_bits(a)
        quotient = fixedpoint.doubling_high_multiply(a << headroom, inverse)
        q31, shift = fixedpoint.quantize_multiplier(float(scale_a / (scale_b * scale)))
        scaled = fixedpoint.doubling_high_multiply(quotient, q31)
        right = reciprocal_shift + headroom - shift
        rounded = fixedpoint.rounding_divide_by_pot(scaled, np.clip(right, 0, 40))
        rounded = np.where(right < 0, scaled << np.clip(-right, 0, 31), rounded)
        rounded = np.where(b == 0, np.sign(a) * fixedpoint.INT32_MAX, rounded)
        bounds = fixedpoint.activation_bounds(*activation_range(attributes), output)
        return np.clip(rounded + zero_point, *bounds).astype(output.dtype)

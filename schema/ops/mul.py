"""MUL: a * b, broadcasting, with a fused activation.

int8: (a - zero_a) * (b - zero_b), requantized by s_a * s_b / s_out (TFLite integer_ops/mul.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.attributes import activation_range
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Arithmetic


class Mul(Arithmetic):
    name = "MUL"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, a, b):
        return a * b

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        (scale_a, zero_a), (scale_b, zero_b) = (per_tensor(cls.name, "input", t) for t in given)
        scale, zero_point = per_tensor(cls.name, "output", output)
        product = (a.astype(np.int64) - zero_a) * (b.astype(np.int64) - zero_b)
        bounds = fixedpoint.activation_bounds(*activation_range(attributes), output)
        multiplier = float(scale_a * scale_b / scale)  # in float32, as TFLite computes it
        return fixedpoint.requantize(product, multiplier, zero_point, *bounds).astype(output.dtype)

"""SQRT: the square root.

int8, int16: the real root over the output's scale, rounded toward zero as LiteRT does it; negative numbers give 0.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Unary


class Sqrt(Unary):
    name = "SQRT"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return np.sqrt(x)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        real = scale * np.maximum(x.astype(np.int64) - zero_point, 0).astype(np.float32)
        return fixedpoint.saturate(np.trunc(np.sqrt(real) / output_scale) + output_zero, x.dtype).astype(x.dtype)

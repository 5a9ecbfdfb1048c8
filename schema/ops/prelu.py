"""PRELU: (x, alpha) -> x above zero, else alpha * x; alpha broadcasts to x.

int8: x - zero_point, or its product with alpha - zero_point, times a multiplier (TFLite reference/prelu.h).
int16: with int8 slopes.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.base import require
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE, per_tensor, require_dtype
from schema.ops.elementwise import Binary


class Prelu(Binary):
    name = "PRELU"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, alpha = inputs
        if x.dtype in WIDE:
            require_dtype(cls.name, "slopes", alpha, QUANTIZED)
            result = [TensorType(broadcast_shapes(x.shape, alpha.shape), x.dtype)]
        else:
            result = super().infer(attributes, inputs, values)
        if x.shape is None:
            return result
        trailing = (alpha.shape or ())[::-1]
        fits = len(trailing) <= x.rank and all(
            a in (None, 1) or d in (None, a) for a, d in zip(trailing, x.shape[::-1], strict=False)
        )
        require(fits, f"slopes {alpha} do not broadcast to {x}")
        return result

    @classmethod
    def compute(cls, a, b):
        return np.where(a >= 0, a, a * b)

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        (scale, zero_point), (alpha_scale, alpha_zero) = (per_tensor(cls.name, "input", t) for t in given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        value = a.astype(np.int64) - zero_point
        below = value * (b.astype(np.int64) - alpha_zero)
        scaled = np.where(
            value >= 0,
            fixedpoint.multiply_by_real(value, scale / output_scale),
            fixedpoint.multiply_by_real(below, scale * alpha_scale / output_scale),
        )
        return fixedpoint.saturate(scaled + output_zero, a.dtype).astype(a.dtype)

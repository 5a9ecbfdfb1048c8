"""LEAKY_RELU: x above zero, else alpha * x.

int8: x - zero_point times one of two multipliers, by its sign (TFLite reference/leaky_relu.h).
"""

from __future__ import annotations

import math

import numpy as np

from schema import fixedpoint
from schema.ops.attributes import AlphaAttributes
from schema.ops.base import require
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Unary


class LeakyRelu(Unary):
    name = "LEAKY_RELU"
    dtypes = FLOATS | QUANTIZED | WIDE
    Attributes = AlphaAttributes

    @classmethod
    def check(cls, attributes):
        require(math.isfinite(attributes.alpha), f"alpha {attributes.alpha} is not a number")

    @classmethod
    def compute(cls, x, attributes):
        return np.where(x >= 0, x, x * x.dtype.type(attributes.alpha))

    @classmethod
    def quantized(cls, x, attributes, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        value = x.astype(np.int64) - zero_point
        slope = scale * np.float32(attributes.alpha) / output_scale
        above = fixedpoint.multiply_by_real(value, scale / output_scale)
        scaled = np.where(value >= 0, above, fixedpoint.multiply_by_real(value, slope))
        return fixedpoint.saturate(scaled + output_zero, x.dtype).astype(x.dtype)

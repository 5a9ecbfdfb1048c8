"""GELU: x * P(X <= x) for a standard normal X, or its approximation by tanh (Hendrycks and Gimpel 2016).

int8 is a table, int16 one with lines between its entries.
"""

from __future__ import annotations

import math

import numpy as np

from schema.ops.attributes import GeluAttributes
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.elementwise import Unary
from schema.ops.special import erfc

CUBIC = 0.044715


class Gelu(Unary):
    name = "GELU"
    Attributes = GeluAttributes
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        kind = x.dtype.type
        if attributes.approximate:
            return kind(0.5) * x * (1 + np.tanh(kind(math.sqrt(2 / math.pi)) * (x + kind(CUBIC) * x * x * x)))
        return kind(0.5) * x * erfc(x * kind(-math.sqrt(0.5)))

    @classmethod
    def tabulated(cls, real, attributes):
        kind = np.float32
        if attributes.approximate:
            inner = kind(math.sqrt(2 / math.pi)) * (real + kind(CUBIC) * real * real * real)
            return kind(0.5) * real * (kind(1) + np.tanh(inner.astype(np.float64)).astype(kind))
        inner = (-real.astype(np.float64) * math.sqrt(0.5)).astype(kind)
        return kind(0.5) * real * erfc(inner.astype(np.float64)).astype(kind)

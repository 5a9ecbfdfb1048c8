"""GELU: x * P(X <= x) for a standard normal X, or its approximation by tanh (Hendrycks and Gimpel 2016)."""

from __future__ import annotations

import math

import numpy as np

from schema.ops.attributes import GeluAttributes
from schema.ops.elementwise import Unary
from schema.ops.special import erfc


class Gelu(Unary):
    name = "GELU"
    Attributes = GeluAttributes

    @classmethod
    def compute(cls, x, attributes):
        kind = x.dtype.type
        if attributes.approximate:
            return kind(0.5) * x * (1 + np.tanh(kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x)))
        return kind(0.5) * x * erfc(x * kind(-math.sqrt(0.5)))

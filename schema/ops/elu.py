"""ELU: x above zero, else alpha * (exp(x) - 1)."""

from __future__ import annotations

import math

import numpy as np

from schema.ops.attributes import AlphaAttributes
from schema.ops.base import require
from schema.ops.elementwise import Unary


class Elu(Unary):
    name = "ELU"
    Attributes = AlphaAttributes

    @classmethod
    def check(cls, attributes):
        require(math.isfinite(attributes.alpha), f"alpha {attributes.alpha} is not a number")

    @classmethod
    def compute(cls, x, attributes):
        return np.where(x >= 0, x, np.expm1(x) * x.dtype.type(attributes.alpha))

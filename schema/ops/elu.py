"""ELU: x above zero, else alpha * (exp(x) - 1)."""

from __future__ import annotations

import numpy as np

from schema.ops.attributes import AlphaAttributes
from schema.ops.elementwise import Unary


class Elu(Unary):
    name = "ELU"
    Attributes = AlphaAttributes

    @classmethod
    def compute(cls, x, attributes):
        return np.where(x >= 0, x, np.expm1(x) * x.dtype.type(attributes.alpha))

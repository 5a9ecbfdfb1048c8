"""LEAKY_RELU: x above zero, else alpha * x."""

from __future__ import annotations

import numpy as np

from schema.ops.attributes import AlphaAttributes
from schema.ops.elementwise import Unary


class LeakyRelu(Unary):
    name = "LEAKY_RELU"
    Attributes = AlphaAttributes

    @classmethod
    def compute(cls, x, attributes):
        return np.where(x >= 0, x, x * x.dtype.type(attributes.alpha))

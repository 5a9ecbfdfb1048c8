"""LOGISTIC: 1 / (1 + exp(-x)). The int8 output has scale 1/256 and zero point -128; it is a table."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary
from schema.ops.special import logistic


class Logistic(Unary):
    name = "LOGISTIC"

    @classmethod
    def compute(cls, x, attributes):
        return logistic(x)

    @classmethod
    def tabulated(cls, real, attributes):
        exponential = np.exp(-real.astype(np.float64)).astype(np.float32)
        return np.float32(1) / (np.float32(1) + exponential)

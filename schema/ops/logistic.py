"""LOGISTIC: 1 / (1 + exp(-x)). The int8 output has scale 1/256 and zero point -128."""

from __future__ import annotations

from schema.ops.elementwise import Unary
from schema.ops.special import logistic


class Logistic(Unary):
    name = "LOGISTIC"

    @classmethod
    def compute(cls, x, attributes):
        return logistic(x)

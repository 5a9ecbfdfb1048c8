"""SWISH: x * logistic(x), also called SiLU."""

from __future__ import annotations

from schema.ops.elementwise import Unary
from schema.ops.special import logistic


class Swish(Unary):
    name = "SWISH"

    @classmethod
    def compute(cls, x, attributes):
        return x * logistic(x)

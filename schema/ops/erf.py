"""ERF: the error function."""

from __future__ import annotations

from schema.ops.elementwise import Unary
from schema.ops.special import erf


class Erf(Unary):
    name = "ERF"

    @classmethod
    def compute(cls, x, attributes):
        return erf(x)

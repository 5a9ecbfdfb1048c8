"""NEG: -x."""

from __future__ import annotations

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Unary


class Neg(Unary):
    name = "NEG"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, x, attributes):
        return -x

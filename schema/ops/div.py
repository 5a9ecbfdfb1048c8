"""DIV: a / b, broadcasting, with a fused activation. Integers divide toward zero, as TFLite does (reference/div.h)."""

from __future__ import annotations

from schema.ops.elementwise import Arithmetic, refuse_zero


class Div(Arithmetic):
    name = "DIV"

    @classmethod
    def compute(cls, a, b):
        if a.dtype.kind == "f":
            return a / b
        refuse_zero(cls.name, b)
        quotient = a // b
        return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)

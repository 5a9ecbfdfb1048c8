"""SUB: a - b, broadcasting, with a fused activation."""

from __future__ import annotations

from schema.ops.elementwise import Arithmetic


class Sub(Arithmetic):
    name = "SUB"

    @classmethod
    def compute(cls, a, b):
        return a - b

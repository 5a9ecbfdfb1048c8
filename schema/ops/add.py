"""ADD: a + b, broadcasting, with a fused activation."""

from __future__ import annotations

from schema.ops.elementwise import Arithmetic


class Add(Arithmetic):
    name = "ADD"

    @classmethod
    def compute(cls, a, b):
        return a + b

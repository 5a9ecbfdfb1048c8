"""SQUARED_DIFFERENCE: (a - b)^2, broadcasting."""

from __future__ import annotations

from schema.ops.elementwise import Binary


class SquaredDifference(Binary):
    name = "SQUARED_DIFFERENCE"

    @classmethod
    def compute(cls, a, b):
        return (a - b) * (a - b)

"""RECIPROCAL: 1 / x."""

from __future__ import annotations

from schema.ops.elementwise import Unary


class Reciprocal(Unary):
    name = "RECIPROCAL"

    @classmethod
    def compute(cls, x, attributes):
        return 1 / x

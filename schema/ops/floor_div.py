"""FLOOR_DIV: the largest integer not above a / b, broadcasting. int8: the nearest step to it (elementwise.py)."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import RoundedBinary, refuse_zero


class FloorDiv(RoundedBinary):
    name = "FLOOR_DIV"

    @classmethod
    def compute(cls, a, b):
        if a.dtype.kind == "f":
            return np.floor(a.astype(np.float64) / b)
        refuse_zero(cls.name, b)
        return a // b

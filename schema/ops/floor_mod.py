"""FLOOR_MOD: a - b * floor(a / b), broadcasting: it has the sign of b. int8: the nearest step (elementwise.py)."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import RoundedBinary, refuse_zero


class FloorMod(RoundedBinary):
    name = "FLOOR_MOD"

    @classmethod
    def compute(cls, a, b):
        if a.dtype.kind != "f":
            refuse_zero(cls.name, b)
        return np.mod(a, b)

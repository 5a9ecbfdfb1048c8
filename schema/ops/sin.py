"""SIN: sin(x), x in radians."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Sin(Unary):
    name = "SIN"

    @classmethod
    def compute(cls, x, attributes):
        return np.sin(x)

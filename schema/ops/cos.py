"""COS: cos(x), x in radians."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Cos(Unary):
    name = "COS"

    @classmethod
    def compute(cls, x, attributes):
        return np.cos(x)

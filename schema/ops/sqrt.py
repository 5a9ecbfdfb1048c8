"""SQRT: the square root."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Sqrt(Unary):
    name = "SQRT"

    @classmethod
    def compute(cls, x, attributes):
        return np.sqrt(x)

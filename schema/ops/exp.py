"""EXP: e to the x."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Exp(Unary):
    name = "EXP"

    @classmethod
    def compute(cls, x, attributes):
        return np.exp(x)

"""ROUND: the nearest integer, ties to even."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Round(Unary):
    name = "ROUND"

    @classmethod
    def compute(cls, x, attributes):
        return np.rint(x)

"""EXPM1: exp(x) - 1, exact near zero."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Expm1(Unary):
    name = "EXPM1"

    @classmethod
    def compute(cls, x, attributes):
        return np.expm1(x)

"""CEIL: the smallest integer not below x."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Ceil(Unary):
    name = "CEIL"

    @classmethod
    def compute(cls, x, attributes):
        return np.ceil(x)

"""FLOOR: the largest integer not above x."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Floor(Unary):
    name = "FLOOR"

    @classmethod
    def compute(cls, x, attributes):
        return np.floor(x)

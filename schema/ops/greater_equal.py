"""GREATER_EQUAL: whether a >= b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Comparison


class GreaterEqual(Comparison):
    name = "GREATER_EQUAL"

    @classmethod
    def compute(cls, a, b):
        return np.greater_equal(a, b)

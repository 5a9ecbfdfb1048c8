"""LESS_EQUAL: whether a <= b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Comparison


class LessEqual(Comparison):
    name = "LESS_EQUAL"

    @classmethod
    def compute(cls, a, b):
        return np.less_equal(a, b)

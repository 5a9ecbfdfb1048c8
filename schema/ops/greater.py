"""GREATER: whether a > b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Comparison


class Greater(Comparison):
    name = "GREATER"

    @classmethod
    def compute(cls, a, b):
        return np.greater(a, b)

"""LESS: whether a < b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Comparison


class Less(Comparison):
    name = "LESS"

    @classmethod
    def compute(cls, a, b):
        return np.less(a, b)

"""HARD_SWISH: x * min(max(x + 3, 0), 6) / 6."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class HardSwish(Unary):
    name = "HARD_SWISH"

    @classmethod
    def compute(cls, x, attributes):
        return x * np.clip(x + 3, 0, 6) / 6

"""RSQRT: 1 / sqrt(x)."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Rsqrt(Unary):
    name = "RSQRT"

    @classmethod
    def compute(cls, x, attributes):
        return 1 / np.sqrt(x)

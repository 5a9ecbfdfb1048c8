"""RELU6: x clamped to [0, 6]."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Relu6(Unary):
    name = "RELU6"

    @classmethod
    def compute(cls, x, attributes):
        return np.clip(x, 0, 6)

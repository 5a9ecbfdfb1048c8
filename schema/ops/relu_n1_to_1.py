"""RELU_N1_TO_1: x clamped to [-1, 1]."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class ReluN1To1(Unary):
    name = "RELU_N1_TO_1"

    @classmethod
    def compute(cls, x, attributes):
        return np.clip(x, -1, 1)

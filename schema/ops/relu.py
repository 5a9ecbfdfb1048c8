"""RELU: x above zero, else 0."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Relu(Unary):
    name = "RELU"

    @classmethod
    def compute(cls, x, attributes):
        return np.maximum(x, 0)

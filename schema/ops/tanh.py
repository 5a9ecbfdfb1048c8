"""TANH: tanh(x). The int8 output has scale 1/128 and zero point 0; it is a table."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Tanh(Unary):
    name = "TANH"

    @classmethod
    def compute(cls, x, attributes):
        return np.tanh(x)

"""RELU: x above zero, else 0."""

from __future__ import annotations

import math

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.rectifier import Rectifier


class Relu(Rectifier):
    name = "RELU"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def bounds(cls, attributes):
        return 0.0, math.inf

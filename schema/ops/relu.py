"""RELU: x above zero, else 0."""

from __future__ import annotations

import math

from schema.ops.rectifier import Rectifier


class Relu(Rectifier):
    name = "RELU"

    @classmethod
    def bounds(cls, attributes):
        return 0.0, math.inf

"""RELU_N1_TO_1: x clamped to [-1, 1]."""

from __future__ import annotations

from schema.ops.rectifier import Rectifier


class ReluN1To1(Rectifier):
    name = "RELU_N1_TO_1"

    @classmethod
    def bounds(cls, attributes):
        return -1.0, 1.0

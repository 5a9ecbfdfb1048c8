"""RELU6: x clamped to [0, 6]."""

from __future__ import annotations

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.rectifier import Rectifier


class Relu6(Rectifier):
    name = "RELU6"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def bounds(cls, attributes):
        return 0.0, 6.0

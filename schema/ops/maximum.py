"""MAXIMUM: the larger of a and b, broadcasting.

int8 compares the integers: all three tensors have one scale (reference/maximum_minimum.h).
"""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.elementwise import Binary


class Maximum(Binary):
    name = "MAXIMUM"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, a, b):
        return np.maximum(a, b)

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        return np.maximum(a, b)

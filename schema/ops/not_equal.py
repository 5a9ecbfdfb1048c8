"""NOT_EQUAL: whether a != b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import BOOL, FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.elementwise import Comparison


class NotEqual(Comparison):
    name = "NOT_EQUAL"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE | BOOL
    scales_int16 = True

    @classmethod
    def compute(cls, a, b):
        return np.not_equal(a, b)

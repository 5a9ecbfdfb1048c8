"""EQUAL: whether a == b, broadcasting. The output is bool."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import BOOL, FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Comparison


class Equal(Comparison):
    name = "EQUAL"
    dtypes = FLOATS | INTEGERS | QUANTIZED | BOOL

    @classmethod
    def compute(cls, a, b):
        return np.equal(a, b)

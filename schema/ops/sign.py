"""SIGN: -1, 0 or 1."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Unary


class Sign(Unary):
    name = "SIGN"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, x, attributes):
        return np.sign(x)

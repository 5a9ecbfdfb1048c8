"""ABS: |x|."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Unary


class Abs(Unary):
    name = "ABS"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, x, attributes):
        return np.abs(x)

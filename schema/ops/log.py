"""LOG: the natural logarithm."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.elementwise import Unary


class Log(Unary):
    name = "LOG"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return np.log(x)

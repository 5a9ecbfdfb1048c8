"""EXP: e to the x."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.elementwise import Unary


class Exp(Unary):
    name = "EXP"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return np.exp(x)

"""LOGISTIC: 1 / (1 + exp(-x)). The int8 output has scale 1/256 and zero point -128; it is a table.

int16: the output has scale 1/32768, by a table of 256 entries (TFLite integer_ops/logistic.h).
"""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.elementwise import Unary
from schema.ops.interpolated_table import in_table_units
from schema.ops.interpolated_table import logistic as logistic_of_table
from schema.ops.special import logistic


class Logistic(Unary):
    name = "LOGISTIC"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return logistic(x)

    @classmethod
    def tabulated(cls, real, attributes):
        exponential = np.exp(-real.astype(np.float64)).astype(np.float32)
        return np.float32(1) / (np.float32(1) + exponential)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        if given.dtype in WIDE:
            return logistic_of_table(in_table_units(cls.name, x, given, output, 0))
        return super().quantized(x, attributes, given, output)

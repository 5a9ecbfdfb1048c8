"""TANH: tanh(x). The int8 output has scale 1/128 and zero point 0; it is a table.

int16: the output has scale 1/32768, by the table of LOGISTIC (TFLite integer_ops/tanh.h).
"""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.elementwise import Unary
from schema.ops.interpolated_table import in_table_units
from schema.ops.interpolated_table import tanh as tanh_of_table


class Tanh(Unary):
    name = "TANH"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return np.tanh(x)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        if given.dtype in WIDE:
            return tanh_of_table(in_table_units(cls.name, x, given, output, 1))
        return super().quantized(x, attributes, given, output)

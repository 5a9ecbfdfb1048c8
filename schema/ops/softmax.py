"""SOFTMAX: exp(beta * x) over its sum along an axis.

int8: exponentials and the reciprocal of their sum are fixed-point, in Q0 and Q12 (TFLite reference/softmax.h).
The output has scale 1/256 and zero point -128.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import FLOATS, QUANTIZED, require_output
from schema.ops.fixed_point_functions import reciprocal
from schema.ops.normalization import AlongAxis, ScaledDifferences

OUTPUT_BITS = 8


class Softmax(AlongAxis):
    name = "SOFTMAX"
    dtypes = FLOATS | QUANTIZED

    @classmethod
    def compute(cls, x, attributes):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        exponentials = np.exp(shifted)
        return exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float64)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        require_output(cls.name, output, 1 / 256, -128)
        differences = ScaledDifferences(cls.name, x, attributes.beta, given)
        scale, right = reciprocal(differences.sum_of_exponentials(), differences.SUM_BITS)
        product = fixedpoint.doubling_high_multiply(differences.exponentials, scale)
        result = fixedpoint.rounding_divide_by_pot(product, np.minimum(right + 31 - OUTPUT_BITS, 31)) - 128
        return np.where(differences.counted, np.minimum(result, 127), -128).astype(x.dtype)

"""LOG_SOFTMAX: the logarithm of SOFTMAX along an axis.

int8: in fixed point, Q5 (TFLite integer_ops/log_softmax.h). The output has scale 16/256 and zero point 127; beta is 1.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.base import require
from schema.ops.dtypes import FLOATS, QUANTIZED, require_output
from schema.ops.fixed_point_functions import log_of_at_least_one
from schema.ops.normalization import AlongAxis, ScaledDifferences

OUTPUT_INTEGER_BITS = 4


class LogSoftmax(AlongAxis):
    name = "LOG_SOFTMAX"
    dtypes = FLOATS | QUANTIZED

    @classmethod
    def compute(cls, x, attributes):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True, dtype=np.float64))

    @classmethod
    def quantized(cls, x, attributes, given, output):
        require(attributes.beta == 1.0, f"beta is {attributes.beta}: int8 LOG_SOFTMAX has beta 1")
        require_output(cls.name, output, 16 / 256, 127)
        differences = ScaledDifferences(cls.name, x, 1.0, given)
        bits = differences.INPUT_BITS
        logarithm = log_of_at_least_one(differences.sum_of_exponentials(), differences.SUM_BITS, bits)
        # Below this difference the result would not fit: the smallest number in Q5 plus the logarithm, in input units.
        inverse = float(1 << (31 - differences.shift)) / differences.q31
        smallest = fixedpoint.multiply_by_real(fixedpoint.wrap_int32(logarithm + fixedpoint.INT32_MIN), inverse)
        threshold = np.maximum(differences.smallest - 1, smallest)
        exact = fixedpoint.wrap_int32(differences.scaled - logarithm)
        result = fixedpoint.rounding_divide_by_pot(exact, 31 - bits - OUTPUT_INTEGER_BITS) + 127
        return np.where(differences.raw > threshold, np.clip(result, -128, 127), -128).astype(x.dtype)

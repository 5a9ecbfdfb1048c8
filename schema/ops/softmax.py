"""SOFTMAX: exp(beta * x) over its sum along an axis.

int8: exponentials and the reciprocal of their sum are fixed-point, in Q0 and Q12 (TFLite reference/softmax.h).
The output has scale 1/256 and zero point -128.
int16: both are tables of 513 entries (SoftmaxInt16 of the same file). The output has scale 1/32768.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE, per_tensor, require_output
from schema.ops.fixed_point_functions import reciprocal
from schema.ops.interpolated_table import OUTPUT_SCALE, look_up, table_between
from schema.ops.normalization import AlongAxis, ScaledDifferences

OUTPUT_BITS = 8


class Softmax(AlongAxis):
    name = "SOFTMAX"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        exponentials = np.exp(shifted)
        return exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float64)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        if given.dtype in WIDE:
            return cls.wide(x, attributes, given, output)
        require_output(cls.name, output, 1 / 256, -128)
        differences = ScaledDifferences(cls.name, x, attributes.beta, given)
        scale, right = reciprocal(differences.sum_of_exponentials(), differences.SUM_BITS)
        product = fixedpoint.doubling_high_multiply(differences.exponentials, scale)
        result = fixedpoint.rounding_divide_by_pot(product, np.minimum(right + 31 - OUTPUT_BITS, 31)) - 128
        return np.where(differences.counted, np.minimum(result, 127), -128).astype(x.dtype)

    @classmethod
    def wide(cls, x: np.ndarray, attributes: Any, given: TensorType, output: TensorType) -> np.ndarray:
        """The result for int16 along the last axis."""
        require_output(cls.name, output, OUTPUT_SCALE, 0)
        scale, _ = per_tensor(cls.name, "input", given)
        if x.size == 0:
            return x
        difference = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
        difference = fixedpoint.multiply_by_real(difference, table_multiplier(scale, attributes.beta)) + 32767
        exponentials = look_up(fixedpoint.saturate(difference, np.int16), exponential_table())
        total = exponentials.sum(axis=-1, keepdims=True)
        bits = np.frexp(total.astype(np.float64))[1]  # total has so many
        shifted = ((total << (31 - bits)) + (1 << 13)) >> 14
        inverse = look_up(fixedpoint.saturate(shifted - (1 << 15) - (1 << 16), np.int16), inverse_table())
        right = bits - 1
        result = (exponentials * inverse + (np.int64(1) << (right - 1))) >> right
        return np.clip(result, 0, 32767).astype(x.dtype)


def table_multiplier(scale: np.float32, beta: float) -> float:
    """From int16 steps to those of the table of exponentials: 0 to 65535 of them below the largest number are exponents
    from 0 to -10.
    """
    return float(scale) * float(np.float32(beta)) / (10.0 / 65535.0)


@cache
def exponential_table() -> np.ndarray:
    """exp from -10 to 0, with 15 fractional bits."""
    return table_between(np.exp, np.float64(-10), np.float64(0), np.float64(2 / 65535))


@cache
def inverse_table() -> np.ndarray:
    """1 / (1 + x) for x from 0 to 1, with 15 fractional bits."""
    return table_between(lambda x: 1 / (1 + x), np.float64(0), np.float64(1), np.float64(2 / 65535))

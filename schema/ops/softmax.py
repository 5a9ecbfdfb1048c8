"""SOFTMAX: exp(beta * x) over its sum along an axis; of (x, mask), over the sum of what the mask lets in.

mask: bool, of no more dimensions than x; both broadcast. What it does not let in counts nothing and becomes 0. Where it
lets in nothing along the axis, all count, and alike, whatever they are: so it is in Keras, which puts one huge negative
number in the place of what is not let in.
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
from schema.ops.base import require
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.dtypes import BOOL, FLOATS, QUANTIZED, WIDE, is_quantized, per_tensor, require_dtype, require_output
from schema.ops.fixed_point_functions import reciprocal
from schema.ops.interpolated_table import OUTPUT_SCALE, look_up, table_between
from schema.ops.normalization import AlongAxis, ScaledDifferences

OUTPUT_BITS = 8


class Softmax(AlongAxis):
    name = "SOFTMAX"
    inputs = (1, 2)
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def infer(cls, attributes, inputs, values):
        (x,) = super().infer(attributes, inputs, values)
        mask = inputs[1] if len(inputs) > 1 else None
        if mask is None:
            return [x]
        require_dtype(cls.name, "the mask", mask, BOOL)
        if mask.rank is not None and x.rank is not None:
            require(mask.rank <= x.rank, f"a mask {mask} has more dimensions than what it masks, {x}")
        return [TensorType(broadcast_shapes(x.shape, mask.shape), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        mask = arrays[1] if len(arrays) > 1 else None
        if mask is None:
            return super().reference(attributes, arrays, inputs, outputs)
        x, let_in = (
            np.moveaxis(array, attributes.axis, -1)
            for array in np.broadcast_arrays(arrays[0], mask)  # of x's rank
        )
        with np.errstate(all="ignore"):
            x, let_in = _as_equals(x, let_in)
            if is_quantized(inputs[0]):
                result = cls.quantized(x, attributes, inputs[0], outputs[0], let_in)
            else:
                result = cls.compute(x, attributes, let_in).astype(x.dtype)
        return [np.ascontiguousarray(np.moveaxis(result, -1, attributes.axis))]

    @classmethod
    def compute(cls, x, attributes, let_in=None):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        exponentials = _only(let_in, np.exp(shifted))
        return exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float64)

    @classmethod
    def quantized(cls, x, attributes, given, output, let_in=None):
        if given.dtype in WIDE:
            return cls.wide(x, attributes, given, output, let_in)
        require_output(cls.name, output, 1 / 256, -128)
        differences = ScaledDifferences(cls.name, x, attributes.beta, given, let_in)
        scale, right = reciprocal(differences.sum_of_exponentials(), differences.SUM_BITS)
        product = fixedpoint.doubling_high_multiply(differences.exponentials, scale)
        result = fixedpoint.rounding_divide_by_pot(product, np.minimum(right + 31 - OUTPUT_BITS, 31)) - 128
        return np.where(differences.counted, np.minimum(result, 127), -128).astype(x.dtype)

    @classmethod
    def wide(
        cls, x: np.ndarray, attributes: Any, given: TensorType, output: TensorType, let_in: np.ndarray | None = None
    ) -> np.ndarray:
        """The result for int16 along the last axis."""
        require_output(cls.name, output, OUTPUT_SCALE, 0)
        scale, _ = per_tensor(cls.name, "input", given)
        if x.size == 0:
            return x
        difference = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
        difference = fixedpoint.multiply_by_real(difference, table_multiplier(scale, attributes.beta)) + 32767
        exponentials = _only(let_in, look_up(fixedpoint.saturate(difference, np.int16), exponential_table()))
        total = exponentials.sum(axis=-1, keepdims=True)
        bits = np.frexp(total.astype(np.float64))[1]  # total has so many
        shifted = ((total << (31 - bits)) + (1 << 13)) >> 14
        inverse = look_up(fixedpoint.saturate(shifted - (1 << 15) - (1 << 16), np.int16), inverse_table())
        right = bits - 1
        result = (exponentials * inverse + (np.int64(1) << (right - 1))) >> right
        return np.clip(result, 0, 32767).astype(x.dtype)


def _as_equals(x: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, which of it count) along the last axis: what is not let in made equal to the largest that is, and where
    nothing is let in, all of it 0 and counting.
    """
    lowest = -np.inf if x.dtype in FLOATS else np.iinfo(x.dtype).min
    nothing = ~mask.any(axis=-1, keepdims=True)
    largest = np.where(mask, x, x.dtype.type(lowest)).max(axis=-1, keepdims=True, initial=lowest)
    return np.where(mask, x, np.where(nothing, x.dtype.type(0), largest)), mask | nothing


def _only(let_in: np.ndarray | None, exponentials: np.ndarray) -> np.ndarray:
    return exponentials if let_in is None else np.where(let_in, exponentials, exponentials.dtype.type(0))


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

"""Base of softmaxes: ops that work on vectors along one axis."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import SoftmaxAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, is_quantized, per_tensor, require_dtype
from schema.ops.fixed_point_functions import exp_on_negative_values, rescale
from schema.ops.operands import normalize_axis


class AlongAxis(Op):
    """y = f(x along the axis). Subclasses give `compute`, and `quantized` if their `dtypes` have int8."""

    Attributes = SoftmaxAttributes
    dtypes: ClassVar[Collection[np.dtype]] = FLOATS

    @classmethod
    def compute(cls, x: np.ndarray, attributes: Any) -> np.ndarray:
        """The result along the last axis."""
        raise NotImplementedError(cls.name)

    @classmethod
    def quantized(cls, x: np.ndarray, attributes: Any, given: TensorType, output: TensorType) -> np.ndarray:
        """The result for int8 along the last axis."""
        raise NotImplementedError(cls.name)

    @classmethod
    def check(cls, attributes):
        require(math.isfinite(attributes.beta), f"beta {attributes.beta} is not a number")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, cls.dtypes)
        if x.rank is not None:
            normalize_axis(attributes.axis, x.rank)
        return [TensorType(x.shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = np.moveaxis(arrays[0], attributes.axis, -1)
        if is_quantized(inputs[0]):
            result = cls.quantized(x, attributes, inputs[0], outputs[0])
        else:
            with np.errstate(all="ignore"):
                result = cls.compute(x, attributes).astype(x.dtype)
        return [np.ascontiguousarray(np.moveaxis(result, -1, attributes.axis))]


class ScaledDifferences:
    """beta * (x - max(x)) along the last axis in fixed point, as SOFTMAX and LOG_SOFTMAX of int8 start.

    raw: x - max(x). scaled: the same times beta and the scale, in Q5. counted: which are not too small to matter, and
    let in. smallest: the least raw difference that counts. q31, shift: the multiplier from raw to scaled.
    """

    INPUT_BITS = 5
    SUM_BITS = 12

    def __init__(self, op: str, x: np.ndarray, beta: float, given: TensorType, let_in: np.ndarray | None = None):
        scale, _ = per_tensor(op, "input", given)
        fraction = 31 - self.INPUT_BITS
        multiplier = min(float(np.float32(beta)) * float(scale) * 2.0**fraction, 2.0**31 - 1)
        require(multiplier > 1, f"beta {beta} times the input's scale {scale} is too small")
        self.q31, self.shift = fixedpoint.quantize_multiplier(multiplier)
        self.smallest = -math.floor(((1 << self.INPUT_BITS) - 1) * 2.0 ** (fraction - self.shift))
        self.raw = x.astype(np.int64) - x.max(axis=-1, keepdims=True, initial=-128)
        self.counted = self.raw >= self.smallest
        if let_in is not None:
            self.counted &= let_in
        scaled = fixedpoint.multiply_by_quantized_multiplier(self.raw, self.q31, self.shift)
        self.scaled = np.where(self.counted, scaled, 0)
        self.exponentials = exp_on_negative_values(self.scaled, self.INPUT_BITS)

    def sum_of_exponentials(self) -> np.ndarray:
        """In Q12."""
        terms = np.where(self.counted, rescale(self.exponentials, -self.SUM_BITS), 0)
        return fixedpoint.wrap_int32(terms.sum(axis=-1, keepdims=True))

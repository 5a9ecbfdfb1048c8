"""Base of softmaxes: ops that work on vectors along one axis."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import SoftmaxAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, is_quantized, require_dtype
from schema.ops.reduction import normalize_axis


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
        require(bool(np.isfinite(attributes.beta)), f"beta {attributes.beta} is not a number")

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

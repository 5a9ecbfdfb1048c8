"""Base of ops that clamp: RELU and its relatives, CLAMP."""

from __future__ import annotations

from typing import Any

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.dtypes import per_tensor
from schema.ops.elementwise import Unary


class Rectifier(Unary):
    """y = x clamped to `bounds`.

    int8: x is requantized to the output's scale, then clamped to the integers nearest to the bounds
    (TFLite kernels/activations.cc).
    """

    @classmethod
    def bounds(cls, attributes: Any) -> tuple[float, float]:
        """The lowest and the highest real number that is let through."""
        raise NotImplementedError(cls.name)

    @classmethod
    def compute(cls, x, attributes):
        return np.clip(x, *cls.bounds(attributes))

    @classmethod
    def quantized(cls, x: np.ndarray, attributes: Any, given: TensorType, output: TensorType) -> np.ndarray:
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        scaled = fixedpoint.multiply_by_real(x.astype(np.int64) - zero_point, scale / output_scale) + output_zero
        return np.clip(scaled, *fixedpoint.activation_bounds(*cls.bounds(attributes), output)).astype(x.dtype)

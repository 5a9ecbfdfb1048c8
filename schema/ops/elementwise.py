"""Bases of ops that work element by element: one input, two that broadcast, and comparisons."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from schema import fixedpoint
from schema.errors import ExecutionError
from schema.graph import TensorType
from schema.ops import interpolated_table
from schema.ops.attributes import ArithmeticAttributes, activation_range, check_activation
from schema.ops.base import Op, require
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.dtypes import (
    BOOL,
    FLOATS,
    INTEGERS,
    QUANTIZED,
    WIDE,
    is_quantized,
    per_tensor,
    require_dtype,
    require_same_dtype,
)
from schema.ops.lookup_table import look_up, table


def refuse_zero(op: str, divisor: np.ndarray) -> None:
    """Raise ExecutionError for an integer division by zero."""
    if not np.all(divisor):
        raise ExecutionError(f"{op} divides integers by zero")


class Unary(Op):
    """y = f(x). Subclasses give `compute`; int8 is a table of it unless they give `quantized`."""

    dtypes: ClassVar[Collection[np.dtype]] = FLOATS | QUANTIZED

    @classmethod
    def compute(cls, x: np.ndarray, attributes: Any) -> np.ndarray:
        """The result for plain numbers, computed in the dtype of x."""
        raise NotImplementedError(cls.name)

    @classmethod
    def tabulated(cls, real: np.ndarray, attributes: Any) -> np.ndarray:
        """float32 to float32: what int8 tables are made from. By default one correctly rounded function."""
        return np.asarray(cls.compute(real.astype(np.float64), attributes)).astype(np.float32)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], cls.dtypes)
        return [TensorType(inputs[0].shape, inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        with np.errstate(all="ignore"):
            if is_quantized(inputs[0]):
                return [np.asarray(cls.quantized(x, attributes, inputs[0], outputs[0]))]
            return [np.asarray(cls.compute(x, attributes)).astype(x.dtype, copy=False)]

    @classmethod
    def quantized(cls, x: np.ndarray, attributes: Any, given: TensorType, output: TensorType) -> np.ndarray:
        """The result for int8; for int16, where the op's `dtypes` have it, on lines between the entries of a table."""
        if given.dtype in WIDE:
            wide = interpolated_table.table(cls.name, lambda real: cls.tabulated(real, attributes), given, output)
            return interpolated_table.look_up(x, wide).astype(x.dtype)
        return look_up(x, table(cls.name, lambda real: cls.tabulated(real, attributes), given, output))


class Binary(Op):
    """y = f(a, b), broadcasting. Subclasses give `compute`, and `quantized` if their `dtypes` have int8."""

    inputs = (2, 2)
    dtypes: ClassVar[Collection[np.dtype]] = FLOATS | INTEGERS

    @classmethod
    def compute(cls, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The result for plain numbers of one dtype."""
        raise NotImplementedError(cls.name)

    @classmethod
    def quantized(
        cls, attributes: Any, a: np.ndarray, b: np.ndarray, given: tuple[TensorType, TensorType], output: TensorType
    ) -> np.ndarray:
        """The result for int8."""
        raise NotImplementedError(cls.name)

    @classmethod
    def infer(cls, attributes, inputs, values):
        a, b = inputs
        require_dtype(cls.name, "input", a, cls.dtypes)
        require_same_dtype(cls.name, a, b)
        return [TensorType(broadcast_shapes(a.shape, b.shape), a.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        a, b = arrays
        with np.errstate(all="ignore"):
            if is_quantized(inputs[0]):
                return [np.asarray(cls.quantized(attributes, a, b, tuple(inputs), outputs[0]))]
            return [np.asarray(cls.activate(attributes, cls.compute(a, b))).astype(outputs[0].dtype, copy=False)]

    @classmethod
    def activate(cls, attributes: Any, result: np.ndarray) -> np.ndarray:
        """The fused activation, where the op has one."""
        return result


class RoundedBinary(Binary):
    """A binary op whose int8 result is the step of the output that is nearest to the result for the real numbers, ties
    away from zero; what is no number is the zero point. TFLite has no such kernel.
    """

    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        pairs = [(x, *per_tensor(cls.name, "input", t)) for x, t in zip((a, b), given, strict=True)]
        real = cls.compute(*((x.astype(np.float64) - zero_point) * float(scale) for x, scale, zero_point in pairs))
        scale, zero_point = per_tensor(cls.name, "output", output)
        steps = fixedpoint.round_half_away(np.nan_to_num(real, posinf=np.inf, neginf=-np.inf) / float(scale))
        return fixedpoint.saturate(steps + zero_point, output.dtype).astype(output.dtype)


class Arithmetic(Binary):
    """A binary op with a fused activation."""

    Attributes = ArithmeticAttributes

    @classmethod
    def check(cls, attributes):
        check_activation(attributes)

    @classmethod
    def activate(cls, attributes, result):
        low, high = activation_range(attributes)
        if result.dtype.kind == "f":
            return np.clip(result, low, high)
        info = np.iinfo(result.dtype)
        return np.clip(result, int(max(low, info.min)), int(min(high, info.max)))


class Comparison(Binary):
    """A binary op that gives bool.

    int8: compares the operands in units of 1/256, each scaled and rounded by itself (TFLite kernels/comparisons.cc).
    int16: the integers, which must be of one scale, unless the op `scales_int16` as it does int8.
    """

    scales_int16: ClassVar[bool] = False

    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        (scale_a, zero_a), (scale_b, zero_b) = (per_tensor(cls.name, "input", t) for t in given)
        if a.dtype in WIDE and not cls.scales_int16:
            require(scale_a == scale_b, f"{cls.name} compares int16 of one scale, not {scale_a} with {scale_b}")
            return cls.compute(a, b)
        a = fixedpoint.multiply_by_real((a.astype(np.int64) - zero_a) << 8, scale_a)
        b = fixedpoint.multiply_by_real((b.astype(np.int64) - zero_b) << 8, scale_b)
        return cls.compute(a, b)

    @classmethod
    def infer(cls, attributes, inputs, values):
        return [TensorType(super().infer(attributes, inputs, values)[0].shape, np.dtype(bool))]


class Logical(Comparison):
    """A comparison of bool with bool."""

    dtypes = BOOL

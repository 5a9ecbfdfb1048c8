"""Ops that reduce over axes: (x, axes) -> x without those axes, or with size 1 there."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from schema.graph import Shape, TensorType
from schema.ops.attributes import ArgAttributes, ReduceAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, is_quantized, per_tensor, require_dtype
from schema.ops.operands import normalize_axis


def normalize_axes(axes: np.ndarray, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each once, in order. axes: a scalar or a vector of integers."""
    return tuple(sorted({normalize_axis(int(axis), rank) for axis in np.ravel(axes)}))


def reduced_shape(x: TensorType, axes: TensorType, value: np.ndarray | None, keep_dims: bool) -> Shape | None:
    """The output's shape, as far as it is known without the axes' value (which may name an axis twice)."""
    require(axes.rank in (None, 0, 1), f"the axes are {axes}, not a vector")
    if x.shape is None:
        return None
    if value is not None:
        reduced = normalize_axes(value, len(x.shape))
        if keep_dims:
            return tuple(1 if i in reduced else d for i, d in enumerate(x.shape))
        return tuple(d for i, d in enumerate(x.shape) if i not in reduced)
    return (None,) * len(x.shape) if keep_dims else None


class Reduction(Op):
    """y = f(x over axes). Subclasses give `compute`, and `quantized` if their `dtypes` have int8."""

    Attributes = ReduceAttributes
    inputs = (2, 2)
    dtypes: ClassVar[Collection[np.dtype]] = FLOATS | INTEGERS

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, axes = inputs
        require_dtype(cls.name, "input", x, cls.dtypes)
        require_dtype(cls.name, "axes", axes, INTEGERS)
        return [TensorType(reduced_shape(x, axes, values[1], attributes.keep_dims), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, axes = arrays[0], normalize_axes(arrays[1], arrays[0].ndim)
        if is_quantized(inputs[0]):
            return [np.asarray(cls.quantized(x, axes, attributes.keep_dims, inputs[0], outputs[0]))]
        with np.errstate(all="ignore"):
            return [np.asarray(cls.compute(x, axes, attributes.keep_dims)).astype(x.dtype, copy=False)]

    @classmethod
    def compute(cls, x: np.ndarray, axes: tuple[int, ...], keep_dims: bool) -> np.ndarray:
        """The result for plain numbers."""
        raise NotImplementedError(cls.name)

    @classmethod
    def quantized(
        cls, x: np.ndarray, axes: tuple[int, ...], keep_dims: bool, given: TensorType, output: TensorType
    ) -> np.ndarray:
        """The result for int8."""
        raise NotImplementedError(cls.name)


def wide(x: np.ndarray) -> Any:
    """The dtype in which sums are held."""
    return np.float64 if x.dtype.kind == "f" else x.dtype


def count(x: np.ndarray, axes: tuple[int, ...]) -> int:
    """How many elements become one."""
    return math.prod(x.shape[axis] for axis in axes)


def centred_sum(
    op: str, x: np.ndarray, axes: tuple[int, ...], keep_dims: bool, given: TensorType, output: TensorType
) -> tuple[np.ndarray, float, int]:
    """(sum of x - zero_point, s_in / s_out, the output's zero point) for int8."""
    scale, zero_point = per_tensor(op, "input", given)
    output_scale, output_zero = per_tensor(op, "output", output)
    total = np.sum(x, axis=axes, keepdims=keep_dims, dtype=np.int64) - zero_point * count(x, axes)
    return np.asarray(total), float(scale) / float(output_scale), output_zero


def lowest(dtype: np.dtype) -> Any:
    """The number that is smaller than all others."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: np.dtype) -> Any:
    """The number that is larger than all others."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def infer_axis(op: str, axis: TensorType, value: np.ndarray | None, rank: int | None) -> int | None:
    """The axis counted from the front, None where it or the rank is unknown.

    Raises ShapeError where it is not one number or not there.
    """
    require_dtype(op, "axis", axis, INTEGERS)
    require(axis.rank in (None, 0) or axis.shape == (1,), f"the axis is {axis}, not one number")
    return None if value is None or rank is None else normalize_axis(int(value.reshape(())), rank)


class ArgReduction(Op):
    """(x, axis) -> indices along the axis. Subclasses give `find`."""

    Attributes = ArgAttributes
    inputs = (2, 2)

    @classmethod
    def find(cls, x: np.ndarray, axis: int) -> np.ndarray:
        """The indices, of any integer dtype."""
        raise NotImplementedError(cls.name)

    @classmethod
    def check(cls, attributes):
        require(attributes.dtype in INTEGERS, f"indices can be int32 or int64, not {attributes.dtype}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, FLOATS | INTEGERS | QUANTIZED)
        axis = infer_axis(cls.name, inputs[1], values[1], x.rank)
        if x.shape is None:
            return [TensorType(None, attributes.dtype)]
        require(x.rank > 0, "the input is a scalar")
        if axis is None:
            return [TensorType((None,) * (x.rank - 1), attributes.dtype)]
        require(x.shape[axis] != 0, f"there is nothing along axis {axis} of {x}")
        return [TensorType((*x.shape[:axis], *x.shape[axis + 1 :]), attributes.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        axis = normalize_axis(int(arrays[1].reshape(())), arrays[0].ndim)
        return [np.asarray(cls.find(arrays[0], axis)).astype(attributes.dtype)]

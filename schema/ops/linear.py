"""What ops that sum products share: dtypes, exact integer arithmetic, and the way from an accumulator to the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import activation_range
from schema.ops.base import element_count, require
from schema.ops.dtypes import (
    ACCUMULATORS,
    FLOATS,
    QUANTIZED,
    WIDE,
    WIDE_ACCUMULATORS,
    is_quantized,
    per_tensor,
    quantized,
    require_dtype,
    require_same_dtype,
)


def infer_dtype(op: str, x: TensorType, weights: TensorType, bias: TensorType | None) -> np.dtype:
    """The output dtype: all are of one float dtype, int8 with an int32 bias, or int16 with int8 weights."""
    require_dtype(op, "input", x, FLOATS | QUANTIZED | WIDE)
    if x.dtype in WIDE:
        require_dtype(op, "weights", weights, QUANTIZED)
        if bias is not None:
            require_dtype(op, "bias", bias, WIDE_ACCUMULATORS)
        return x.dtype
    require_same_dtype(op, x, weights)
    if bias is not None:
        require_dtype(op, "bias", bias, {x.dtype} if x.dtype in FLOATS else ACCUMULATORS)
    return x.dtype


def infer_bias(bias: TensorType | None, out: int | None) -> None:
    """Raise ShapeError unless the bias, where there is one, has `out` elements."""
    if bias is None or bias.shape is None:
        return
    require(bias.rank == 1, f"the bias is {bias}, not a vector")
    require(None in (out, bias.shape[0]) or bias.shape[0] == out, f"bias {bias} does not fit {out} output channels")


def macs(weights: TensorType, pixels: TensorType) -> int:
    """Multiply-accumulates where each element of `pixels` (..., channels) meets all weights of its channel."""
    return element_count(pixels) * element_count(weights) // max((pixels.shape or (1,))[-1] or 1, 1)


def centred(op: str, what: str, x: np.ndarray, tensor: TensorType) -> np.ndarray:
    """What is multiplied: x - zero_point for integers (int64), x itself for floats (at least float32)."""
    if is_quantized(tensor):
        _, zero_point = quantized(op, what, tensor).broadcast(x.ndim)
        return x.astype(np.int64) - zero_point
    return x.astype(np.float32) if x.dtype == np.float16 else x


def exact_dtype(x: np.ndarray, weights: np.ndarray, reduced: int | tuple[int, ...]) -> np.dtype:
    """A float dtype in which sums of products of these integers are exact: float matrix products are the fast ones."""
    if x.dtype.kind == "f":
        return x.dtype
    largest = int(np.abs(x).max(initial=0)) * int(np.abs(weights).sum(axis=reduced).max(initial=0))
    return np.dtype(np.float32 if largest < 1 << 24 else np.float64)


def finish(
    op: str,
    attributes: Any,
    acc: np.ndarray,
    bias: np.ndarray | None,
    x: TensorType,
    weights: TensorType,
    output: TensorType,
    *,
    channel_axis: int = 0,
    exact: bool = False,
) -> np.ndarray:
    """Bias, requantization and fused activation: accumulators (..., out) to the output.

    channel_axis: where the weights have their output channels, along which they may have several scales.
    exact: see fixedpoint.requantize. int16 has a rule of its own, fixedpoint.requantize_wide, but not where `exact`,
    nor with a bias of int32, beside which sums are int32 too: these are rounded as those of int8.
    """
    if bias is not None:
        acc = acc + bias.astype(acc.dtype)
    low, high = activation_range(attributes)
    if not is_quantized(x):
        return np.clip(acc, low, high).astype(output.dtype)
    input_scale, _ = per_tensor(op, "input", x)
    output_scale, zero_point = per_tensor(op, "output", output)
    scales = quantized(op, "weights", weights)
    if scales.per_channel:
        require(scales.axis == channel_axis, f"the weights have scales along axis {scales.axis}, not {channel_axis}")
    multipliers = np.float64(input_scale) * scales.scale.astype(np.float64) / np.float64(output_scale)
    bounds = fixedpoint.activation_bounds(low, high, output)
    if x.dtype in WIDE:
        if bias is not None and bias.dtype == np.int32:
            acc = fixedpoint.wrap_int32(acc)
        elif not exact:
            return fixedpoint.requantize_wide(acc, multipliers, *bounds).astype(output.dtype)
        return fixedpoint.requantize(acc, multipliers, 0, *bounds, "TFLITE_DOUBLE", exact).astype(output.dtype)
    return fixedpoint.requantize(acc, multipliers, zero_point, *bounds, exact=exact).astype(output.dtype)

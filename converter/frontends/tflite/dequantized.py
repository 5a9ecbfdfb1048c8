"""Constants that the file stores in few bits and computes with as float32.

float16 weights pass a DEQUANTIZE; dynamic-range models give int8 weights to ops of float activations. Both become
float32 constants that are stored as they were: float16, or integers times a scale for each channel.
"""

from __future__ import annotations

import numpy as np

from schema.errors import UnsupportedError
from schema.graph import Constant, Tensor

FLOAT32 = np.dtype(np.float32)


def dequantized(tensor: Tensor) -> Constant:
    """The value of a float16 or quantized constant as one of a float32 tensor, stored in no more bytes."""
    values = tensor.constant.values
    if values.dtype == np.float16:
        return Constant(values)
    if tensor.quantization is None:
        raise UnsupportedError(f"constant '{tensor.name}' is {tensor.dtype} without a scale: no real numbers")
    scale, zero_point = tensor.quantization.broadcast(values.ndim)
    integers = _narrow(values.astype(np.int64) - zero_point)
    if not values.ndim:
        return Constant(integers.astype(FLOAT32) * scale)
    axis = tensor.quantization.axis
    if not tensor.quantization.per_channel:
        # Where weights have their output channels: first, or last in depthwise ones.
        axis = 0 if values.shape[0] != 1 else values.ndim - 1
    return Constant(integers, np.broadcast_to(np.ravel(scale), values.shape[axis]).astype(FLOAT32), axis)


def _narrow(integers: np.ndarray) -> np.ndarray:
    low, high = integers.min(initial=0), integers.max(initial=0)
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return integers.astype(dtype)
    return integers


def real_weights(weights: Tensor, x: Tensor) -> Tensor:
    """The weights of an op on x: float32 where they are stored as integers and x holds real numbers.

    TFLite's kernels round the activations of such ops to int8 as they run; here they stay float32, which is what the
    weights were rounded for (docs/converting.md).
    """
    if not weights.is_constant or x.dtype != FLOAT32 or weights.dtype.kind not in "iu":
        return weights
    return Tensor(weights.name, FLOAT32, weights.shape, None, dequantized(weights))

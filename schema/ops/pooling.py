"""Pooling over windows of one, two or three spatial axes; padding never takes part.

A window's sum or maximum is found one axis after another: for a window of h x w that is h + w steps instead of h * w.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import activation_range
from schema.ops.base import Op, require
from schema.ops.convolution import along, check_window, output_size, pad_amounts
from schema.ops.dtypes import FLOATS, QUANTIZED, is_quantized, require_dtype


class Pool(Op):
    """What poolings share. `axes` names the spatial axes."""

    axes: ClassVar[str]

    @classmethod
    def check(cls, attributes):
        check_window(attributes, cls.axes)
        if attributes.padding == "EXPLICIT":
            sizes = np.repeat(along(attributes, "filter", cls.axes), 2)
            require(bool(np.all(attributes.pads < sizes)), f"pads {attributes.pads} leave windows with nothing in them")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, rank = inputs[0], len(cls.axes) + 2
        require_dtype(cls.name, "input", x, FLOATS | QUANTIZED)
        require(x.rank in (None, rank), f"the input is {x}, not of rank {rank}")
        batch, *size, channels = x.shape or (None,) * rank
        spatial = output_size(attributes, cls.axes, size, along(attributes, "filter", cls.axes))
        return [TensorType((batch, *spatial, channels), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        low, high = activation_range(attributes) if hasattr(attributes, "activation") else (-np.inf, np.inf)
        if is_quantized(inputs[0]):
            bounds = fixedpoint.activation_bounds(low, high, outputs[0])
            return [np.clip(cls.pool(attributes, arrays[0]), *bounds).astype(arrays[0].dtype)]
        return [np.clip(cls.pool(attributes, arrays[0]), low, high).astype(arrays[0].dtype)]

    @classmethod
    def pool(cls, attributes: Any, x: np.ndarray) -> np.ndarray:
        """The pooled array, before activation."""
        raise NotImplementedError(cls.name)


def reduce_windows(attributes: Any, axes: str, x: np.ndarray, ufunc: np.ufunc, padding: Any, dtype: Any) -> np.ndarray:
    """`ufunc` (add, maximum) over every window of x (batch, *spatial, channels), padded with the value `padding`."""
    kernel = along(attributes, "filter", axes)
    pads = pad_amounts(attributes, axes, x.shape[1:-1], kernel)
    result = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=padding)
    for axis, (size, stride) in enumerate(zip(kernel, along(attributes, "stride", axes), strict=True), 1):
        windows = np.lib.stride_tricks.sliding_window_view(result, size, axis)
        result = ufunc.reduce(windows[(slice(None),) * axis + (slice(None, None, stride),)], axis=-1, dtype=dtype)
    return result


class MaxPool(Pool):
    """The largest number of each window."""

    @classmethod
    def pool(cls, attributes, x):
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return reduce_windows(attributes, cls.axes, x, np.maximum, lowest, x.dtype)


class AveragePool(Pool):
    """The mean of each window's numbers that are not padding.

    int8: the mean of the integers, rounded half away from zero (integer_ops/pooling.h); one scale in and out.
    """

    @classmethod
    def pool(cls, attributes, x):
        wide = np.int64 if x.dtype.kind == "i" else np.float64
        total = reduce_windows(attributes, cls.axes, x, np.add, 0, wide)
        inside = np.ones((1, *x.shape[1:-1], 1), np.int64)
        count = reduce_windows(attributes, cls.axes, inside, np.add, 0, np.int64)
        if x.dtype.kind == "f":
            return total / count
        return np.sign(total) * ((np.abs(total) + count // 2) // count)

"""Pooling over windows of one, two or three spatial axes; padding never takes part.

A window's sum or maximum is found one axis after another: for a window of h x w that is h + w steps instead of h * w.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.attributes import activation_range
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, QUANTIZED, require_dtype
from schema.ops.windows import along, check_window, output_size, pad_amounts, static_output_size


class Pool(Op):
    """What poolings share. `axes` names the spatial axes."""

    axes: ClassVar[str]
    dtypes: ClassVar[Collection[np.dtype]] = FLOATS | QUANTIZED

    @classmethod
    def check(cls, attributes):
        check_window(attributes, cls.axes)
        if attributes.padding == "EXPLICIT":
            sizes = np.repeat(along(attributes, "filter", cls.axes), 2)
            require(bool(np.all(attributes.pads < sizes)), f"pads {attributes.pads} leave windows with nothing in them")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, rank = inputs[0], len(cls.axes) + 2
        require_dtype(cls.name, "input", x, cls.dtypes)
        require(x.rank in (None, rank), f"the input is {x}, not of rank {rank}")
        batch, *size, channels = x.shape or (None,) * rank
        spatial = output_size(attributes, cls.axes, size, along(attributes, "filter", cls.axes))
        return [TensorType((batch, *spatial, channels), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        low, high = activation_range(attributes) if hasattr(attributes, "activation") else (-np.inf, np.inf)
        if arrays[0].dtype.kind in "iu":
            bounds = fixedpoint.activation_bounds(low, high, outputs[0])
            return [np.clip(cls.pool(attributes, arrays[0]), *bounds).astype(arrays[0].dtype)]
        return [np.clip(cls.pool(attributes, arrays[0]), low, high).astype(arrays[0].dtype)]

    @classmethod
    def pool(cls, attributes: Any, x: np.ndarray) -> np.ndarray:
        """The pooled array, before activation."""
        raise NotImplementedError(cls.name)


def reduce_windows(attributes: Any, axes: str, x: np.ndarray, ufunc: np.ufunc, dtype: Any) -> np.ndarray:
    """`ufunc` (add, maximum) over the pixels that each window of x (batch, *spatial, channels) has."""
    result = x
    for axis, (starts, ends) in enumerate(bounds(attributes, axes, x.shape[1:-1]), 1):
        last = result.take([-1], axis)  # an end past the last pixel must still be an index
        pairs = np.stack([starts, ends], axis=1).ravel()
        segments = ufunc.reduceat(np.concatenate([result, last], axis), pairs, axis, dtype)
        result = segments[(slice(None),) * axis + (slice(None, None, 2),)]
    return result


def bounds(attributes: Any, axes: str, size: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each axis where the windows (output,) start and end within the input."""
    kernel = along(attributes, "filter", axes)
    output = static_output_size(attributes, axes, size, kernel)
    strides, pads = along(attributes, "stride", axes), pad_amounts(attributes, axes, size, kernel)
    result = []
    for out, stride, k, n, (before, _) in zip(output, strides, kernel, size, pads, strict=True):
        starts = np.arange(out) * stride - before
        result.append((np.clip(starts, 0, n), np.clip(starts + k, 0, n)))
    return result


class MaxPool(Pool):
    """The largest number of each window."""

    @classmethod
    def pool(cls, attributes, x):
        return reduce_windows(attributes, cls.axes, x, np.maximum, x.dtype)


class AveragePool(Pool):
    """The mean of each window's numbers that are not padding.

    int8: the mean of the integers, rounded half away from zero (integer_ops/pooling.h); one scale in and out. So does
    uint8 (legacy), whose zero lies elsewhere.
    """

    @classmethod
    def pool(cls, attributes, x):
        total = reduce_windows(attributes, cls.axes, x, np.add, np.int64 if x.dtype.kind in "iu" else np.float64)
        count = np.ones((), np.int64)
        for starts, ends in bounds(attributes, cls.axes, x.shape[1:-1]):
            count = count[..., np.newaxis] * (ends - starts)
        count = count[..., np.newaxis]
        if x.dtype.kind == "f":
            return total / count
        return np.sign(total) * ((np.abs(total) + count // 2) // count)

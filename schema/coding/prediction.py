"""What weights let expect of the channel scales and biases beside them, where BatchNorm was folded into a layer.

Folding divides a channel by the deviation of its sums, which grows with the root of its weights' squares, and takes
from its bias the mean of these sums, which is near to a multiple of the sum of its weights. The predictions are whole
numbers; streams hold differences to them, modulo 256. Sums are of integers, and each operation on floats after them is
one that IEEE 754 defines to the bit, so that every reader expects the same.
"""

from __future__ import annotations

import numpy as np

from schema.errors import FormatError
from schema.graph import Constant

LARGEST = float(1 << 31)


def of_scales(values: np.ndarray, axis: int, factor: float) -> np.ndarray:
    """int8, for each index along `axis`: factor / root of the sum of squares, rounded. Raises FormatError."""
    return _whole(_inverse_roots(values, axis), factor)


def of_biases(kernel: Constant, factor: float) -> np.ndarray:
    """int8, for each channel of a kernel with channel scales: factor x its scale x the sum of its values, rounded.

    Raises FormatError.
    """
    return _whole(_sums(kernel), factor)


def fit_scales(integers: np.ndarray, values: np.ndarray, axis: int) -> float:
    """The factor by which scales that are these integers times a step are expected best; 0 where nothing is."""
    return _slope(_inverse_roots(values, axis), integers)


def fit_biases(integers: np.ndarray, kernel: Constant) -> float:
    """The factor by which biases that are these integers times a step are expected best; 0 where nothing is."""
    return _slope(_sums(kernel), integers)


def is_of_integers(values: np.ndarray) -> bool:
    """Whether values are of 8 bits: no sum of them, or of their squares, leaves the integers that float64 holds."""
    return values.dtype.kind in "iu" and values.dtype.itemsize == 1


def can_predict(kernel: Constant, count: int) -> bool:
    """Whether a constant says something of so many biases."""
    values = np.asarray(kernel.values)
    return kernel.channel_scale is not None and is_of_integers(values) and values.shape[kernel.axis] == count


def _inverse_roots(values: np.ndarray, axis: int) -> np.ndarray:
    if not is_of_integers(values):
        raise FormatError(f"channel scales expected from values of {values.dtype}, not of 8 bits")
    squares = np.square(values.astype(np.int32)).sum(axis=_others(values, axis), dtype=np.int64)
    return 1 / np.sqrt(np.maximum(squares, 1).astype(np.float64))


def _sums(kernel: Constant) -> np.ndarray:
    values = np.asarray(kernel.values)
    sums = values.sum(axis=_others(values, kernel.axis), dtype=np.int64).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a scale may be anything
        return sums * np.asarray(kernel.channel_scale, np.float32).astype(np.float64)


def _others(values: np.ndarray, axis: int) -> tuple[int, ...]:
    return tuple(i for i in range(values.ndim) if i != axis)


def _whole(features: np.ndarray, factor: float) -> np.ndarray:
    if not np.isfinite(factor):
        raise FormatError(f"a prediction by a factor of {factor}")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.nan_to_num(np.rint(features * np.float64(factor)))
    return np.clip(expected, -LARGEST, LARGEST).astype(np.int64).astype(np.int8)


def _slope(features: np.ndarray, integers: np.ndarray) -> float:
    """Of the line through them with the least squared error, as a float32 of 8 digits, which take fewer bytes."""
    if not np.isfinite(features).all():
        return 0.0
    centred = features - features.mean()
    squares = float(centred @ centred)
    slope = np.float32(centred @ integers / squares if squares > 0 else 0)
    return float((slope.reshape(1).view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)[0])

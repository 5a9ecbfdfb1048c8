"""What tests of int16 arithmetic (TFLite's 16x8: symmetric activations, int8 weights, int64 bias) draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from schema import Quantization
from tests.support.drawing_int8 import scales
from tests.support.litert import Operand

OF_UNIT_RANGE = Quantization(1 / 32768)
"""What LOGISTIC, TANH and SOFTMAX give."""


def quantizations(low: float = 1e-6, high: float = 1e1) -> st.SearchStrategy[Quantization]:
    return scales(low, high).map(Quantization)


def int16(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """All numbers, both ends and small ones among them."""
    drawn = rng.integers(-32768, 32768, shape)
    small, end = rng.integers(-300, 300, shape), rng.choice([-32768, 32767], shape)
    return np.asarray(np.choose(rng.choice(3, shape, p=[0.7, 0.2, 0.1]), [drawn, small, end]), np.int16)


def spread(rng: np.random.Generator, count: int = 2048) -> np.ndarray:
    """Numbers from one end of int16 to the other, both included."""
    return np.unique(np.concatenate([rng.integers(-32768, 32768, count), [-32768, -1, 0, 1, 32767]])).astype(np.int16)


def bias(rng: np.random.Generator, x: Operand, kernel: Operand, channels: int, dtype: type = np.int64) -> Operand:
    """A constant bias with the scale that quantization gives it."""
    product = x.quantization.scale[0].astype(np.float64) * kernel.quantization.scale
    largest = 1 << (30 if dtype is np.int64 else 20)
    return Operand(rng.integers(-largest, largest, channels, dtype), Quantization(product, axis=0), True)


def output(draw: Callable[..., object], typical: float, low: float = -2, high: float = 2) -> Quantization:
    """A scale with which numbers of size `typical` are from 10**-high to 10**-low times half of the range.

    Not below what LiteRT allows with RELU6.
    """
    return Quantization(max(typical * 10 ** draw(st.floats(low, high)) / 16384, 1e-8))

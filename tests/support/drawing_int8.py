"""What tests of int8 arithmetic draw with hypothesis: scales, zero points, operands, fused activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from schema import Quantization
from tests.support.litert import Operand

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")

zero_points = st.sampled_from([-128, 0, 127]) | st.integers(-128, 127)
activations = st.sampled_from(ACTIVATIONS)

EVERY_NUMBER = np.arange(-128, 128, dtype=np.int8)
"""All that int8 can hold: a test of a function of one number tries each."""


def scales(low: float = 1e-6, high: float = 1e2) -> st.SearchStrategy[float]:
    """float32 scales, spread evenly over the orders of magnitude."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda e: float(np.float32(10**e)))


def quantizations(low: float = 1e-6, high: float = 1e2) -> st.SearchStrategy[Quantization]:
    return st.builds(Quantization, scales(low, high), zero_points)


def int8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def weights(
    draw: Callable[..., object], rng: np.random.Generator, shape: tuple[int, ...], axis: int, spread: float = 1e6
) -> Operand:
    """Constant symmetric int8 weights with one scale, or one for each index on `axis`, `spread` apart at most."""
    channels = shape[axis] if draw(st.booleans()) else 1
    low = draw(st.floats(-5, -1))
    channel_scales = 10 ** (low + np.log10(spread) * (rng.random(channels) - 0.5))
    values = rng.integers(-127, 128, shape).astype(np.int8)
    return Operand(values, Quantization(channel_scales, axis=axis), True)


def bias(rng: np.random.Generator, x: Operand, kernel: Operand, channels: int, largest: int = 1 << 15) -> Operand:
    """A constant int32 bias with the scale that quantization gives it."""
    product = x.quantization.scale[0].astype(np.float64) * kernel.quantization.scale
    return Operand(rng.integers(-largest, largest, channels, dtype=np.int32), Quantization(product, axis=0), True)


def output(draw: Callable[..., object], typical: float) -> Quantization:
    """A quantization in which numbers of size `typical` are from 1/1000 of a step to 1000 steps.

    Not below 1e-8: LiteRT refuses scales in which RELU6's bound is no int32.
    """
    return Quantization(max(typical * 10 ** draw(st.floats(-3, 3)), 1e-8), draw(zero_points))


def quotients_that_litert_defines(a: Operand, b: Operand, output: Quantization) -> np.ndarray:
    """Where its int8 and int16 DIV shifts right by 0 to 31 bits: the processor takes other numbers modulo 32 or so."""
    x, y = (o.value.astype(np.int64) - o.quantization.zero_point for o in (a, b))
    multiplier = a.quantization.scale[0] / (b.quantization.scale[0] * output.scale[0])
    bits = [
        np.frexp(v.astype(np.float64))[1] for v in (np.where((x < 0) ^ (y < 0), np.abs(x) - 1, np.abs(x)), np.abs(y))
    ]
    right = (bits[1] - 1) + (31 - bits[0]) - math.frexp(float(multiplier))[1]
    return (right >= 0) & (right <= 31)

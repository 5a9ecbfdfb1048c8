"""The engine's integers: what float32 sums stand for, and results that it rounds in a way of its own.

Whole numbers are held in float64, which has all integers up to 2**53; the engine's accumulators times multipliers stay
below. Functions that give real numbers give float32 multiples of the output's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import SMALLEST, in_place_of, round_bias

Exact = Callable[[Any], Any]
"""The scale of a result -> the result as the engine computes it, real numbers."""


def whole(x: Any, scale: Any) -> Any:
    """The integers of numbers that were rounded to multiples of a scale."""
    return tf.round(wide(x) / wide(scale))


def wide(x: Any) -> Any:
    return tf.cast(x, tf.float64)


def real(steps: Any, scale: Any) -> Any:
    return tf.cast(steps, tf.float32) * scale


def half_away(x: Any) -> Any:
    """The nearest whole number, ties away from zero."""
    return tf.sign(x) * tf.floor(tf.abs(x) + tf.constant(0.5, x.dtype))


def accumulated(result: Any, bias: Any, step: Any, training: bool, factor: Any = None) -> Any:
    """factor * result + bias, for a linear layer's result without bias.

    Outside of training, the sums of float32 products are brought to the integers that they stand for, and the bias as
    well. step: of these integers, None where it is unknown. factor: (channels,), of a folded BatchNorm.
    """
    scaled = result if factor is None else result * factor
    unit = step if factor is None or step is None else step * tf.abs(factor)
    if bias is not None:
        bias = tf.convert_to_tensor(bias)
        bias = bias if unit is None else round_bias(bias, unit)
    plain = scaled if bias is None else scaled + bias
    if training or step is None:
        return plain
    sums = tf.round(result / step)
    if factor is not None:
        sums = sums * tf.sign(factor)
    if bias is not None:
        sums = sums + tf.round(bias / tf.where(unit > SMALLEST, unit, tf.ones_like(unit)))
        # A channel whose weights count for nothing is its bias, whatever the step.
        exact = tf.where(unit > SMALLEST, sums * unit, plain)
    else:
        exact = sums * unit
    return in_place_of(plain, exact)


@dataclass(frozen=True)
class Products:
    """What a linear layer sums beside int16 activations, and how the engine brings it to the output's scale. There the
    last bit of a multiplier is up to a step of the result, so that all is rounded as the converter rounds it.

    Attributes:
        integers: gives the sums of products, whole numbers, channels last.
        scale_in: of the input.
        largest: (channels,), of each channel's weights.
        most: (channels,), the integer that this is.
        bias: real, or None.
        factor: (channels,), of a folded BatchNorm, or None.
        once: round as FULLY_CONNECTED does.
    """

    integers: Callable[[], Any]
    scale_in: Any
    largest: Any
    most: Any
    bias: Any = None
    factor: Any = None
    once: bool = False

    def requantized(self, scale: Any) -> Any:
        """The result, before the fused activation, for a scale of the output."""
        sums = self.integers()
        if self.factor is not None:
            sums = sums * tf.sign(wide(self.factor))
        ratio, bias = self.in_steps(scale)
        sums = sums if bias is None else sums + bias
        return real(half_away(sums * ratio) if self.once else by_short_multiplier(sums, ratio), scale)

    def in_steps(self, scale: Any) -> tuple[Any, Any]:
        """(what one of the sums is in steps of the output, the bias as such an integer or None)."""
        largest = self.largest if self.factor is None else self.largest * tf.abs(self.factor)
        weights = tf.cast(wide(largest) / wide(tf.maximum(self.most, 1.0)), tf.float32)
        # A channel without weights is its bias: as the converter has it, in steps of 1/256 of the output's.
        unit = tf.where(weights > SMALLEST, wide(self.scale_in) * wide(weights), wide(scale) / 256)
        bias = None if self.bias is None else half_away(wide(self.bias) / wide(tf.cast(unit, tf.float32)))
        return unit / wide(scale), bias


def mean_of(total: Any, count: int, scale_in: Any) -> Exact:
    """The mean of `count` integers as the engine computes it (QuantizedMeanOrSum of tensorflow/lite/kernels/internal/
    reference/reduce.h): one multiplier for the quotient, and two roundings, of which the first keeps few bits.

    total: of the integers.
    """

    def exact(scale_out: Any) -> Any:
        multiplier, shift = _multiplier(wide(scale_in) / wide(scale_out))
        more = tf.minimum(tf.constant(count.bit_length() - 1, tf.float64), 31 + shift)
        multiplier = tf.floor(multiplier * 2.0**more / count)
        return real(_multiplied(total, multiplier, shift - more), scale_out)

    return exact


def leaky(steps: Any, slope: float, scale_in: Any) -> Exact:
    """LeakyReLU of integers as the engine computes it (tensorflow/lite/kernels/internal/reference/leaky_relu.h): a
    multiplier for each side of zero, and two roundings, which together are off by up to 0.76 of a step.
    """

    def exact(scale_out: Any) -> Any:
        above = rescaled(steps, scale_in / scale_out)
        below = rescaled(steps, scale_in * tf.constant(slope, tf.float32) / scale_out)
        return real(tf.where(steps >= 0, above, below), scale_out)

    return exact


def rescaled(steps: Any, ratio: Any) -> Any:
    """steps * ratio, rounded as MultiplyByQuantizedMultiplier does (tensorflow/lite/kernels/internal/common.cc): to 31
    bits of the ratio, and twice.
    """
    return _multiplied(steps, *_multiplier(wide(ratio)))


def by_short_multiplier(steps: Any, ratio: Any) -> Any:
    """steps * ratio as it is rounded beside int16 activations (the int64 overload in common.cc): once, with 15 bits of
    the ratio, whose error is up to one step of a large result.
    """
    multiplier, shift = _multiplier(ratio)
    short = tf.minimum(tf.floor((multiplier + 2.0**15) / 2.0**16), 2.0**15 - 1)
    return tf.floor(steps * short * 2.0 ** (shift - 15) + 0.5)


def exponent(x: Any) -> Any:
    """The least whole number n with x < 2**n, for x above 0; float64."""
    found = tf.floor(tf.math.log(x) / tf.cast(tf.math.log(2.0), tf.float64)) + 1
    found = tf.where(x >= 2.0**found, found + 1, found)
    return tf.where(x < 2.0 ** (found - 1), found - 1, found)


def _multiplier(ratio: Any) -> tuple[Any, Any]:
    """A number above 0 as multiplier * 2**(shift - 31), the multiplier a whole number of 31 bits; all float64."""
    shift = exponent(ratio)
    return tf.floor(ratio * 2.0 ** (31 - shift) + 0.5), shift


def _multiplied(steps: Any, multiplier: Any, shift: Any) -> Any:
    """steps * multiplier * 2**(shift - 31) in two roundings."""
    high = tf.floor((steps * 2.0 ** tf.maximum(shift, 0.0) * multiplier + 2.0**30) / 2.0**31)
    return half_away(high / 2.0 ** tf.maximum(-shift, 0.0))

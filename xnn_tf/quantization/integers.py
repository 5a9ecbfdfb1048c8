"""The engine's integers, outside of training: sums are exact in the file, and nearly so in float32."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import SMALLEST, in_place_of, round_bias


def accumulated(result: Any, bias: Any, step: Any, training: bool, factor: Any = None) -> Any:
    """factor * result + bias, for a linear layer's result without bias.

    Outside of training, the sums of float32 products are brought to the integers that they stand for, and the bias as
    well. step: of these integers, None where it is unknown. factor: (channels,), of a folded BatchNorm.
    """
    scaled = result if factor is None else result * factor
    whole = step if factor is None or step is None else step * tf.abs(factor)
    if bias is not None:
        bias = tf.convert_to_tensor(bias)
        bias = bias if whole is None else round_bias(bias, whole)
    plain = scaled if bias is None else scaled + bias
    if training or step is None:
        return plain
    sums = tf.round(result / step)
    if factor is not None:
        sums = sums * tf.sign(factor)
    if bias is not None:
        sums = sums + tf.round(bias / tf.where(whole > SMALLEST, whole, tf.ones_like(whole)))
        # A channel whose weights count for nothing is its bias, whatever the step.
        exact = tf.where(whole > SMALLEST, sums * whole, plain)
    else:
        exact = sums * whole
    return in_place_of(plain, exact)


def mean_rounded(mean: Any, count: int, scale_in: Any, scale_out: Any) -> Any:
    """The mean of `count` integers as the engine computes it (QuantizedMeanOrSum of tensorflow/lite/kernels/internal/
    reference/reduce.h): one multiplier for the quotient, and two roundings, of which the first keeps few bits.
    """
    multiplier, shift = _multiplier(tf.cast(scale_in, tf.float64) / tf.cast(scale_out, tf.float64))
    more = tf.minimum(tf.constant(count.bit_length() - 1, tf.float64), 31 + shift)
    multiplier = tf.floor(multiplier * 2.0**more / count)
    total = tf.round(tf.cast(mean * count / scale_in, tf.float64))
    return in_place_of(mean, _multiplied(total, multiplier, shift - more, scale_out))


def leaky_rounded(result: Any, inputs: Any, slope: float, scale_in: Any, scale_out: Any) -> Any:
    """LeakyReLU of integers as the engine computes it (tensorflow/lite/kernels/internal/reference/leaky_relu.h): a
    multiplier for each side of zero, and two roundings, which together are off by up to 0.76 of a step.
    """
    ratio = tf.cast(scale_in, tf.float64) / tf.cast(scale_out, tf.float64)
    steps = tf.round(tf.cast(inputs / scale_in, tf.float64))
    above = _multiplied(steps, *_multiplier(ratio), scale_out)
    below = _multiplied(steps, *_multiplier(ratio * slope), scale_out)
    return in_place_of(result, tf.where(steps >= 0, above, below))


def _multiplier(ratio: Any) -> tuple[Any, Any]:
    """A number above 0 as multiplier * 2**(shift - 31), the multiplier a whole number of 31 bits; all float64."""
    shift = tf.floor(tf.math.log(ratio) / tf.cast(tf.math.log(2.0), tf.float64)) + 1
    shift = tf.where(ratio >= 2.0**shift, shift + 1, shift)
    return tf.floor(ratio * 2.0 ** (31 - shift) + 0.5), shift


def _multiplied(steps: Any, multiplier: Any, shift: Any, scale: Any) -> Any:
    """steps * multiplier * 2**(shift - 31), rounded as MultiplyByQuantizedMultiplier does (tensorflow/lite/kernels/
    internal/common.cc), times the scale of the result: float32.
    """
    high = tf.floor((steps * 2.0 ** tf.maximum(shift, 0.0) * multiplier + 2.0**30) / 2.0**31)
    low = high / 2.0 ** tf.maximum(-shift, 0.0)
    return tf.cast(tf.sign(low) * tf.floor(tf.abs(low) + 0.5), tf.float32) * scale

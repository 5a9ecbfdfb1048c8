"""Rounding as the converter and the engine round, with gradients that pass straight through it.

Activations go through TensorFlow's FakeQuant op: one pass forward and one back, and a node that carries the range to
the converter. Its gradient is that of B. Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018 for the numbers, and for the ends of the range that of J. Choi et al.,
"PACT: Parameterized Clipping Activation for Quantized Neural Networks", 2018. Weights are rounded symmetrically, a step
for each output channel; learned steps have the gradient of S. Esser et al., "Learned Step Size Quantization", ICLR
2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.observing import is_observing

EXACT = "xnn_exact"
"""Name of nodes whose first input only tells how the second is computed; `converter.frontends` knows it."""
SMALLEST = 1e-30  # steps below that are those of channels without weights


def largest_integer(bits: int) -> int:
    """Of symmetric integers: 127 of 8 bits."""
    return 2 ** (bits - 1) - 1


def quotient(a: Any, divisor: float) -> Any:
    """a / divisor in float32, rounded once. TensorFlow's graphs multiply by the reciprocal of a constant instead, which
    is off in the last bit: enough to round a bias the other way. In float64 that does not reach the result.
    """
    return tf.cast(tf.cast(a, tf.float64) / tf.constant(divisor, tf.float64), tf.float32)


def steps_of(kernel: Any, axes: Sequence[int], bits: int) -> Any:
    """The step of each output channel that makes its largest magnitude the largest integer, with the reduced `axes`
    kept at length 1. No gradient.
    """
    steps = quotient(tf.reduce_max(tf.abs(kernel), axis=list(axes), keepdims=True), float(largest_integer(bits)))
    return tf.stop_gradient(tf.where(steps > SMALLEST, steps, tf.ones_like(steps)))


def round_weights(kernel: Any, steps: Any) -> Any:
    """integers x steps, the nearest to the kernel; the gradient is the identity. No weight is beyond the last step."""

    @tf.custom_gradient
    def rounded(weights: Any) -> Any:
        return tf.round(weights / steps) * steps, lambda upstream: upstream

    return rounded(tf.convert_to_tensor(kernel))


def round_by_learned_steps(kernel: Any, steps: Any, bits: int) -> Any:
    """The same with steps that are trained. Weights beyond the largest integer are cut off and have no gradient."""
    most = float(largest_integer(bits))

    @tf.custom_gradient
    def rounded(weights: Any, step: Any) -> Any:
        ratio = weights / step
        integers = tf.round(tf.clip_by_value(ratio, -most, most))

        def gradient(upstream: Any) -> tuple[Any, Any]:
            inside = tf.abs(ratio) <= most
            of_step = upstream * tf.where(inside, integers - ratio, integers)
            axes = [axis for axis, size in enumerate(step.shape) if size == 1]
            count = math.prod(int(weights.shape[axis]) for axis in axes)
            summed = tf.reduce_sum(of_step, axis=axes, keepdims=True) / math.sqrt(count * most)
            return tf.where(inside, upstream, tf.zeros_like(upstream)), summed

        return integers * step, gradient

    return rounded(tf.convert_to_tensor(kernel), tf.convert_to_tensor(steps))


def fake_quantize(x: Any, low: Any, high: Any, bits: int) -> Any:
    """x rounded to 8 bits of [low, high], or to 16 symmetric ones."""
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high, bits, narrow_range=bits == 16)


def scale_and_zero_point(low: Any, high: Any, bits: int) -> tuple[Any, Any]:
    """What FakeQuant makes of a range (fake_quant_ops_functor.h, Nudge), the zero point as of signed integers. Scalars
    of float32, no gradient.
    """
    first, last = _ends_of(bits)
    scale = scale_between(low, high, bits)
    low = tf.stop_gradient(low)
    zero_point = tf.clip_by_value(tf.floor(first - low / scale + 0.5), first, last)
    return scale, zero_point - float(2 ** (bits - 1))


def scale_between(low: Any, high: Any, bits: int) -> Any:
    """The scale alone."""
    first, last = _ends_of(bits)
    return quotient(tf.stop_gradient(high) - tf.stop_gradient(low), last - first)


def _ends_of(bits: int) -> tuple[float, float]:
    """The lowest and the highest of FakeQuant's integers, which count from 0."""
    return float(bits == 16), float(2**bits - 1)


def round_bias(bias: Any, steps: Any) -> Any:
    """A bias rounded to integers of its accumulators' step, as the converter stores it. Straight-through gradient.
    Where the step is 0 it stays.
    """
    safe = tf.where(steps > SMALLEST, steps, tf.ones_like(steps))
    integers = tf.round(tf.cast(bias, tf.float64) / tf.cast(safe, tf.float64))
    return bias + tf.stop_gradient(tf.where(steps > SMALLEST, tf.cast(integers, tf.float32) * safe, bias) - bias)


def in_place_of(plain: Any, exact: Any) -> Any:
    """`exact`, which is `plain` computed as the engine's integers do, with the gradient of `plain`. The converter reads
    `plain` there: its own nodes compute as the engine does. While ranges are observed it is `plain`: the integers may
    be those of a range that this result is to give.
    """
    if is_observing():
        return plain

    @tf.custom_gradient
    def chosen(approximate: Any, integers: Any) -> Any:
        both = tf.raw_ops.IdentityN(input=[integers, approximate], name=EXACT)
        return both[0], lambda upstream: (upstream, None)

    return chosen(plain, exact)

"""Products of matrices with integers on both sides, for layers that are made of several."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import accumulated
from xnn_tf.quantization.ranges import Range, scale_of
from xnn_tf.quantization.strategies.linear import channels, kernel_of


def projected(wrapper: Any, dense: Any, x: Any, source: Range, training: bool) -> Any:
    """What an EinsumDense inside the wrapped layer makes of x, without its activation: the kernel rounded for each
    output channel, the bias to the accumulators' step. source: the range that x was rounded to.
    """
    kernel, steps = wrapper.quantized(kernel_of(dense))
    step = scale_of(source)[0] * channels(dense, steps)
    bias = dense.bias if dense.bias_axes else None
    return accumulated(tf.einsum(dense.equation, x, kernel), bias, step, training)


def joined(equation: str, a: Any, b: Any, ranges: tuple[Range, Range], training: bool) -> Any:
    """The product of two tensors that were rounded to these ranges."""
    first, second = ranges
    return accumulated(tf.einsum(equation, a, b), None, scale_of(first)[0] * scale_of(second)[0], training)

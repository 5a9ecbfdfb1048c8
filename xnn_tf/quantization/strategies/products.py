"""Products of matrices with integers on both sides, for layers that are made of several.

Each gives its result and what the engine gives in its place where activations are int16, None where they are not. For
that the integers themselves are multiplied, in float64, while training too: steps that float32 sums are off add up over
the products of one layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.folding import with_bias
from xnn_tf.quantization.integers import Exact, Products, accumulated, by_short_multiplier, real, whole, wide
from xnn_tf.quantization.ranges import Range, scale_of
from xnn_tf.quantization.strategies.linear import channels, kernel_of, largest_of

Result = tuple[Any, Exact | None]


def are_wide(*ranges: Range | None) -> bool:
    return all(each is not None and each.bits == 16 for each in ranges)


def times_matrix(
    x: Any, matrix: Any, steps: Any, bias: Any, ranges: tuple[Range | None, Range], training: bool
) -> Result:
    """x @ matrix + bias. matrix: (in, out), rounded to steps (out,). ranges: that x was rounded to, None for none, and
    that the result will be.
    """

    def multiply(a: Any, b: Any) -> Any:
        return tf.matmul(a, b) if len(a.shape) == 2 else tf.tensordot(a, b, 1)

    return _times(multiply, x, matrix, steps, steps, tf.reduce_max(tf.abs(matrix), 0), bias, ranges, training)


def projected(wrapper: Any, dense: Any, x: Any, ranges: tuple[Range, Range], training: bool) -> Result:
    """What an EinsumDense inside the wrapped layer makes of x, without its activation: the kernel rounded for each
    output channel, the bias to the accumulators' step. ranges: see `times_matrix`.
    """
    kernel, steps = wrapper.quantized(kernel_of(dense))
    fine, largest = channels(dense, steps), largest_of(dense, kernel)
    bias = dense.bias if dense.bias_axes else None
    return _times(partial(tf.einsum, dense.equation), x, kernel, steps, fine, largest, bias, ranges, training)


def _times(
    multiply: Callable[[Any, Any], Any],
    x: Any,
    kernel: Any,
    steps: Any,
    fine: Any,
    largest: Any,
    bias: Any,
    ranges: tuple[Range | None, Range],
    training: bool,
) -> Result:
    """steps: of the kernel, as they broadcast against it. fine: the same against the result."""
    source, target = ranges
    result = multiply(x, kernel)
    if source is None:
        return with_bias(result, bias, None, training, None)
    scale, _ = scale_of(source)
    step, products = scale * fine, None
    if target.bits == 16:  # int8 numbers become int16 ones of the same steps

        def integers() -> Any:
            return multiply(whole(x, scale), whole(kernel, steps))

        products = Products(integers, scale, largest, tf.round(largest / fine), once=True)
    return with_bias(result, bias, step, training, products)


def joined(equation: str, a: Any, b: Any, ranges: tuple[Range, Range, Range], training: bool) -> Result:
    """The product of two tensors. ranges: that they were rounded to, and that the result will be."""
    scales = [scale_of(each)[0] for each in ranges[:2]]
    unit = scales[0] * scales[1]
    y = tf.einsum(equation, a, b)
    if not are_wide(*ranges):
        return accumulated(y, None, unit, training), None

    def exact(scale: Any) -> Any:
        total = tf.einsum(equation, whole(a, scales[0]), whole(b, scales[1]))
        return real(by_short_multiplier(total, wide(unit) / wide(scale)), scale)

    return y, exact

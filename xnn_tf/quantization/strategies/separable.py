"""Separable convolutions: depthwise, rounded, pointwise."""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.folding import Normalization, with_bias
from xnn_tf.quantization.integers import Products, whole
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategies.linear import add_ranges, finished, integers_of
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class SeparableStrategy(Strategy):
    """The converter makes two convolutions of it, with integers between them."""

    fuses = True

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return layer.data_format == "channels_last" and layer.padding in ("same", "valid")

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "depthwise")
        self._first = add_ranges(self, wrapper)
        self._normalization = Normalization(wrapper, self.settings) if wrapper.batch_norm is not None else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer, between = wrapper.layer, self.ranges["depthwise"]

        def half(x: Any, kernel: Any, convolve: Any, source: Any, name: str, inner: list[int]) -> tuple[Any, Any, Any]:
            """One of the two convolutions: its result, the step of its accumulators, and its products."""
            rounded, steps = wrapper.quantized(kernel)
            result, fine = convolve(x, rounded), tf.reshape(steps, [-1])
            if source is None:
                return result, None, None
            scale, _ = scale_of(source)
            step = scale * fine
            if not self.is_wide([source], name):
                return result, step, None

            def integers() -> Any:
                return convolve(whole(x, scale), whole(rounded, steps))

            largest = tf.reshape(tf.reduce_max(tf.abs(rounded), axis=inner), [-1])
            sums = partial(integers_of, result, step) if training else integers
            return result, step, Products(sums, scale, largest, tf.round(largest / fine))

        result, step, products = half(
            inputs, layer.depthwise_kernel, partial(_depthwise, layer), sources[0], "depthwise", _inner(layer)
        )
        y, exact = with_bias(result, None, step, training, products)
        z = between(y, training, exact)
        result, step, products = half(z, layer.pointwise_kernel, _pointwise, between, self._first, _inner(layer, 1))
        finish = with_bias if self._normalization is None else self._normalization
        y, exact = finish(result, layer.bias if layer.use_bias else None, step, training, products)
        return finished(self, wrapper, y, exact, training)


def _inner(layer: Any, outputs: int = 2) -> list[int]:
    """Axes of a kernel that are summed over: all but the last ones."""
    return list(range(len(layer.depthwise_kernel.shape) - outputs))


def _pointwise(x: Any, kernel: Any) -> Any:
    return tf.nn.convolution(x, kernel, padding="VALID")


def _depthwise(layer: Any, x: Any, kernel: Any) -> Any:
    padding = layer.padding.upper()
    strides, dilation = list(layer.strides), list(layer.dilation_rate)
    if len(strides) == 1:  # one-dimensional: a row of an image
        x, kernel = tf.expand_dims(x, 1), tf.expand_dims(kernel, 0)
        y = tf.nn.depthwise_conv2d(x, kernel, [1, *strides * 2, 1], padding, dilations=[1, *dilation])
        return tf.squeeze(y, [1])
    return tf.nn.depthwise_conv2d(x, kernel, [1, *strides, 1], padding, dilations=dilation)

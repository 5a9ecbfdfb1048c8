"""Separable convolutions: depthwise, rounded, pointwise."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import round_bias
from xnn_tf.quantization.folding import Normalization
from xnn_tf.quantization.integers import accumulated
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategies.functions import FUSED, function_name, range_of_function
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
        name = function_name(wrapper.layer.activation)
        if name not in FUSED:
            self.add_range(wrapper, "before_activation")
        fixed = range_of_function(name, self.settings.activations)
        if fixed is None:
            self.add_range(wrapper, "output")
        else:
            self.ranges["output"] = fixed
        self._normalization = Normalization(wrapper, self.settings) if wrapper.batch_norm is not None else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        kernel, steps = wrapper.quantized(layer.depthwise_kernel)
        step = None if sources[0] is None else scale_of(sources[0])[0] * tf.reshape(steps, [-1])
        between = self.ranges["depthwise"]
        z = between(accumulated(_depthwise(layer, inputs, kernel), None, step, training), training)
        pointwise, steps = wrapper.quantized(layer.pointwise_kernel)
        step = scale_of(between)[0] * tf.reshape(steps, [-1])

        def linear(bias: Any = None) -> Any:
            y = tf.nn.convolution(z, pointwise, padding="VALID")
            return y if bias is None else tf.nn.bias_add(y, tf.convert_to_tensor(bias))

        bias = layer.bias if layer.use_bias else None
        if self._normalization is not None:
            y = self._normalization(lambda: linear(bias), linear, bias, step, training)
        elif training:
            y = linear(None if bias is None else round_bias(tf.convert_to_tensor(bias), step))
        else:
            y = accumulated(linear(), bias, step, training)
        if function_name(layer.activation) not in FUSED:
            y = self.ranges["before_activation"](y, training)
        if layer.activation is not None:
            y = layer.activation(y)
        if wrapper.activation is not None:
            y = wrapper.activation(y)
        return self.output(y, training)


def _depthwise(layer: Any, x: Any, kernel: Any) -> Any:
    padding = layer.padding.upper()
    strides, dilation = list(layer.strides), list(layer.dilation_rate)
    if len(strides) == 1:  # one-dimensional: a row of an image
        x, kernel = tf.expand_dims(x, 1), tf.expand_dims(kernel, 0)
        y = tf.nn.depthwise_conv2d(x, kernel, [1, *strides * 2, 1], padding, dilations=[1, *dilation])
        return tf.squeeze(y, [1])
    return tf.nn.depthwise_conv2d(x, kernel, [1, *strides, 1], padding, dilations=dilation)

"""A BatchNorm that no linear layer is before: the converter makes a depthwise convolution of it, or computes floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import largest_integer, quotient
from xnn_tf.quantization.folding import factor_and_offset
from xnn_tf.quantization.integers import Products, accumulated, whole, wide
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class BatchNormStrategy(Strategy):
    """One factor for each channel, which is exact, and an addend that is rounded as a bias where it becomes one."""

    rounds_weights = False

    fuses = True

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "output")
        self._is_convolution = len(shapes[0]) == 4
        freeze = self.settings.freeze_batch_norm
        self._steps = wrapper.add_counter("steps") if freeze else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer, freeze = wrapper.layer, self.settings.freeze_batch_norm
        factor, offset = factor_and_offset(layer)
        known = self._is_convolution and sources[0] is not None
        scale = scale_of(sources[0])[0] if known else None
        step = None if scale is None else quotient(scale, float(largest_integer(8))) * tf.ones_like(factor)

        def by_batch() -> Any:
            return layer(inputs, training=True)

        def averaged() -> Any:
            return inputs * factor + offset if step is None else accumulated(inputs, offset, step, training, factor)

        exact = None
        if training and layer.trainable and freeze != 0:
            if self._steps is None:
                y = by_batch()
            else:
                done = tf.convert_to_tensor(self._steps)
                self._steps.assign(done + 1)
                y = tf.cond(done < freeze, by_batch, averaged)
        else:
            y = averaged()
            if known and self.is_wide(sources):
                most = tf.fill(tf.shape(factor), float(largest_integer(8)))
                ones = Products(lambda: whole(inputs, scale) * wide(most), scale, tf.ones_like(factor), most)
                exact = replace(ones, bias=offset, factor=factor).requantized
        activation = wrapper.activation
        if activation is None:
            return self.output(y, training, exact)
        return self.output(activation(y), training, exact and (lambda scale: activation(exact(scale))))

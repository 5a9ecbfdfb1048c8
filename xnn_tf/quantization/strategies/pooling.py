"""Means: of windows, which keep the scale of their input, and of whole images, which have their own."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.fake_quantize import in_place_of
from xnn_tf.quantization.integers import mean_rounded
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class SameScaleStrategy(Strategy):
    """Average pooling and bilinear resizing: rounded to the range of the input."""

    rounds_weights = False

    @classmethod
    def takes(cls, layer: Any) -> bool:
        if getattr(layer, "data_format", "channels_last") != "channels_last":
            return False
        return getattr(layer, "interpolation", "bilinear") == "bilinear"

    def output_range(self, sources: list[Any]) -> Any:
        return sources[0] if sources else None

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        y = wrapper.layer.call(inputs)
        source = sources[0]
        if source is None:
            return y
        # The range is the input's, which alone follows the data.
        return source(y if training else _half_away(y, source), False)


def _half_away(y: Any, source: Any) -> Any:
    """Means of integers are halves often, and are rounded away from the integer 0 then (TFLite's AveragePool)."""
    scale, zero_point = scale_of(source)
    integers = y / scale + zero_point
    rounded = tf.sign(integers) * tf.floor(tf.abs(integers) + (0.5 + 1e-4))
    return in_place_of(y, (rounded - zero_point) * scale)


@register_strategy
class MeanStrategy(Strategy):
    """Global average pooling: a range of its own."""

    rounds_weights = False

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return layer.data_format == "channels_last"

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        y = wrapper.layer.call(inputs, **arguments)
        sizes = inputs.shape[1:-1]
        if not training and not arguments and sources[0] is not None and None not in sizes and sources[0].bits == 8:
            scales = scale_of(sources[0])[0], scale_of(self.ranges["output"])[0]
            y = mean_rounded(y, math.prod(int(size) for size in sizes), *scales)
        return self.output(y, training)

"""Activation functions that are layers and follow nothing that they could be fused with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import leaky_rounded
from xnn_tf.quantization.ranges import TableRange, scale_of
from xnn_tf.quantization.strategies.functions import name_of_layer, range_of_function
from xnn_tf.quantization.strategies.weights_only import accepts
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class ActivationStrategy(Strategy):
    """Rounds the result, to the range of the specification where the function has one."""

    rounds_weights = False

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        fixed = range_of_function(name_of_layer(wrapper.layer), self.settings.activations)
        if fixed is None:
            self.add_range(wrapper, "output")
        else:
            self.ranges["output"] = fixed

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        slopes = getattr(layer, "alpha", None) if type(layer).__name__ == "PReLU" else None
        if not accepts(layer, "mask"):
            arguments.pop("mask", None)
        if slopes is None:
            y = layer.call(inputs, **arguments)
            return self.output(y if training else self._as_integers(layer, y, inputs, sources[0]), training)
        rounded = TableRange(slopes, 8)(tf.convert_to_tensor(slopes), training)
        with wrapper.swapped([(slopes, rounded)]):
            return self.output(layer.call(inputs), training)

    def _as_integers(self, layer: Any, y: Any, inputs: Any, source: Any) -> Any:
        """What the engine rounds more than once; all else is rounded by the range of the output."""
        ranges = source, self.ranges["output"]
        if type(layer).__name__ != "LeakyReLU" or source is None or any(each.bits != 8 for each in ranges):
            return y
        slope = float(layer.negative_slope if hasattr(layer, "negative_slope") else layer.alpha)  # Keras 3, tf_keras
        return leaky_rounded(y, inputs, slope, *(scale_of(each)[0] for each in ranges)) if slope > 0 else y


@register_strategy
class RoundingStrategy(Strategy):
    """Of an identity layer: rounds a tensor that comes from outside, or from a layer that computes floats."""

    integer_inputs = False
    rounds_weights = False

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        return self.output(inputs, training)

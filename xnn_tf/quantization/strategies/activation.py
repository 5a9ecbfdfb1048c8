"""Activation functions that are layers and follow nothing that they could be fused with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact, leaky, real, rescaled, whole
from xnn_tf.quantization.ranges import TableRange, scale_of
from xnn_tf.quantization.strategies.functions import name_of_layer, range_of_function
from xnn_tf.quantization.strategies.weights_only import accepts
from xnn_tf.quantization.strategy import Strategy, register_strategy
from xnn_tf.quantization.tables import function_of


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
            exact = self._exact(layer, inputs, sources[0], arguments.get("mask"))
            return self.output(layer.call(inputs, **arguments), training, exact)
        table = TableRange(slopes, 8)
        rounded = table(tf.convert_to_tensor(slopes), training)
        exact = _parametric(inputs, rounded, sources[0], table) if self.is_wide(sources) else None
        with wrapper.swapped([(slopes, rounded)]):
            return self.output(layer.call(inputs), training, exact)

    def _exact(self, layer: Any, inputs: Any, source: Any, mask: Any) -> Exact | None:
        """What the engine computes otherwise than by rounding the result once."""
        if source is None or source.bits != self.ranges["output"].bits:
            return None
        scale, _ = scale_of(source)
        if type(layer).__name__ == "LeakyReLU":
            slope = float(
                layer.negative_slope if hasattr(layer, "negative_slope") else layer.alpha
            )  # Keras 3, tf_keras
            return leaky(whole(inputs, scale), slope, scale) if slope > 0 else None
        name = name_of_layer(layer)
        if source.bits != 16 or name is None:
            return None
        if mask is None:
            return function_of(name, layer.call, whole(inputs, scale), scale)
        return _masked_softmax(layer, whole(inputs, scale), scale, tf.cast(mask, tf.bool))


def _masked_softmax(layer: Any, steps: Any, scale: Any, mask: Any) -> Exact | None:
    """Keras 3 gives 0 where the mask lets in nothing, tf_keras the same number to all."""
    exact = function_of("softmax", None, steps, scale, mask)
    if exact is None or hasattr(layer, "robust_masking"):
        return exact
    return lambda output: tf.where(mask, exact(output), 0.0)


def _parametric(inputs: Any, slopes: Any, source: Any, table: Any) -> Exact:
    """PReLU of int16 numbers with int8 slopes (tensorflow/lite/kernels/internal/reference/prelu.h)."""
    scale, slope_scale = scale_of(source)[0], scale_of(table)[0]
    steps = whole(inputs, scale)
    below = steps * whole(slopes, slope_scale)

    def exact(output: Any) -> Any:
        either = rescaled(steps, scale / output), rescaled(below, scale * slope_scale / output)
        return real(tf.where(steps >= 0, *either), output)

    return exact


@register_strategy
class RoundingStrategy(Strategy):
    """Of an identity layer: rounds a tensor that comes from outside, or from a layer that computes floats."""

    integer_inputs = False
    rounds_weights = False

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        return self.output(inputs, training)

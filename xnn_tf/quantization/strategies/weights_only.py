"""Layers that the engine computes in float32: recurrent ones of other kinds, layers of your own. Their weights are
stored in 8 or 4 bits all the same.
"""

from __future__ import annotations

import inspect
from typing import Any

from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.strategy import Strategy, register_strategy


def accepts(layer: Any, argument: str) -> bool:
    """Whether the layer's `call` takes the argument."""
    return argument in inspect.signature(layer.call).parameters


@register_strategy
class WeightsOnlyStrategy(Strategy):
    """Rounds all kernels for each output channel, and no activation."""

    integer_inputs = False

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        swaps = [(kernel.variable, self.quantized(wrapper, kernel.variable)) for kernel in find_kernels(layer)]
        if accepts(layer, "training"):
            arguments["training"] = training
        if not accepts(layer, "mask"):
            arguments.pop("mask", None)
        with wrapper.swapped(swaps):
            return layer.call(inputs, **arguments)

    def output_range(self, sources: list[Any]) -> None:
        return None

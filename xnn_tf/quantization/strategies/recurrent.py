"""LSTM, GRU and SimpleRNN, in one direction or both."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.strategies.recurrence import Recurrence, known
from xnn_tf.quantization.strategy import Strategy, register_strategy

MERGED = {
    "concat": lambda a, b: tf.concat([a, b], -1),
    "sum": lambda a, b: a + b,
    "ave": lambda a, b: (a + b) / 2,
    "mul": lambda a, b: a * b,
}


@register_strategy
class RecurrentStrategy(Strategy):
    """Rounds what comes in, its product with the kernel, in each step the state and its product with the recurrent
    kernel, and the result. Where states are results as well, none is rounded: they have different ranges.
    """

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return known(layer)

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self._recurrence = Recurrence(self, wrapper, wrapper.layer)
        self._several = bool(wrapper.layer.return_state)
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        initial, mask = arguments.get("initial_state"), arguments.get("mask")
        y, states = self._recurrence(wrapper, inputs, sources[0], initial, mask, training)
        return (y, *states) if self._several else self.output(y, training)

    def output_range(self, sources: list[Any]) -> Any:
        return None if self._several else self.ranges["output"]


@register_strategy
class BidirectionalStrategy(Strategy):
    """Rounds within each direction as RecurrentStrategy does, and what both together give."""

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return known(layer.forward_layer) and known(layer.backward_layer)

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        layer = wrapper.layer
        self._directions = [
            Recurrence(self, wrapper, layer.forward_layer, "forward_"),
            Recurrence(self, wrapper, layer.backward_layer, "backward_"),
        ]
        self._several = bool(layer.return_state) or layer.merge_mode is None
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer, mask, initial = wrapper.layer, arguments.get("mask"), arguments.get("initial_state")
        halves = [None, None] if initial is None else [initial[: len(initial) // 2], initial[len(initial) // 2 :]]
        results = [
            recurrence(wrapper, inputs, sources[0], half, mask, training)
            for recurrence, half in zip(self._directions, halves, strict=True)
        ]
        (forward, states), (backward, more) = results
        if layer.return_sequences:
            backward = tf.reverse(backward, [1])
        merged = [forward, backward] if layer.merge_mode is None else [MERGED[layer.merge_mode](forward, backward)]
        if layer.return_state:
            merged += [*states, *more]
        return tuple(merged) if self._several else self.output(merged[0], training)

    def output_range(self, sources: list[Any]) -> Any:
        return None if self._several else self.ranges["output"]

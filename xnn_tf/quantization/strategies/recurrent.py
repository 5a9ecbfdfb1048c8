"""LSTM, GRU and SimpleRNN, in one direction or both."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact, real, rescaled, whole, wide
from xnn_tf.quantization.ranges import scale_of
from xnn_tf.quantization.settings import Settings
from xnn_tf.quantization.strategies.merging import product_of, sum_of
from xnn_tf.quantization.strategies.recurrence import Recurrence, has_int16_form, known
from xnn_tf.quantization.strategy import Strategy, register_strategy

MERGED = {
    "concat": lambda a, b: tf.concat([a, b], -1),
    "sum": lambda a, b: a + b,
    "ave": lambda a, b: (a + b) / 2,
    "mul": lambda a, b: a * b,
}


@register_strategy
class RecurrentStrategy(Strategy):
    """Rounds as `int16_gates` or `float_gates` tells within the layer, and the result to the recipe's activations.
    Where states are results as well, all are as they are in the loop: they have different ranges.
    """

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return known(layer)

    def input_settings(self, layer: Any) -> Settings:
        return _inside(self.settings, [layer])

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self._recurrence = Recurrence(self, wrapper, wrapper.layer)
        self._several = bool(wrapper.layer.return_state)
        inner = self._recurrence.result
        if inner is not None and self.settings.activations == 16:
            self.ranges["output"] = inner
        else:
            self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        initial, mask = arguments.get("initial_state"), arguments.get("mask")
        y, states = self._recurrence(wrapper, inputs, sources[0], initial, mask, training)
        if self._several:
            return (y, *states)
        inner = self._recurrence.result
        if inner is not None and inner is self.ranges["output"]:
            return y
        return self.output(y, training, None if inner is None else _moved([y], [inner]))

    def output_range(self, sources: list[Any]) -> Any:
        return None if self._several else self.ranges["output"]


@register_strategy
class BidirectionalStrategy(Strategy):
    """Rounds within each direction as RecurrentStrategy does, and what both together give."""

    @classmethod
    def takes(cls, layer: Any) -> bool:
        return known(layer.forward_layer) and known(layer.backward_layer)

    def input_settings(self, layer: Any) -> Settings:
        return _inside(self.settings, [layer.forward_layer, layer.backward_layer])

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        layer = wrapper.layer
        self._directions = [
            Recurrence(self, wrapper, layer.forward_layer, "forward_"),
            Recurrence(self, wrapper, layer.backward_layer, "backward_"),
        ]
        self._several = bool(layer.return_state) or layer.merge_mode is None
        self._ranges_inside = [each.result for each in self._directions]
        self._wide = None not in self._ranges_inside
        joins = self._wide and layer.merge_mode in ("sum", "ave", "mul") and not self._several
        self._rounds_halves = joins and self.settings.activations == 8
        for direction in ("forward_output", "backward_output") if self._rounds_halves else ():
            self.add_range(wrapper, direction)
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
        both = [forward, backward]
        if self._rounds_halves:
            parts = zip(("forward_output", "backward_output"), both, self._ranges_inside, strict=True)
            both = [self.ranges[name](y, training, _moved([y], [inner])) for name, y, inner in parts]
        merged = both if layer.merge_mode is None else [MERGED[layer.merge_mode](*both)]
        if layer.return_state:
            merged += [*states, *more]
        if self._several:
            return tuple(merged)
        exact = self._exact(layer.merge_mode, both) if self._wide else None
        return self.output(merged[0], training, exact)

    def _exact(self, mode: str, both: list[Any]) -> Exact | None:
        """What the engine makes of int16 tensors, None where it is their result rounded once."""
        if mode == "concat":
            return _moved(both, self._ranges_inside)
        if self._rounds_halves or mode == "ave":
            return None
        return sum_of(both, self._ranges_inside) if mode == "sum" else product_of(both, self._ranges_inside)

    def output_range(self, sources: list[Any]) -> Any:
        return None if self._several else self.ranges["output"]


def _inside(settings: Settings, layers: list[Any]) -> Settings:
    """Of what comes in: int16 where all is."""
    return dataclasses.replace(settings, activations=16) if all(map(has_int16_form, layers)) else settings


def _moved(tensors: list[Any], sources: list[Any]) -> Exact:
    """What the engine makes of int16 tensors that are put together: each is rescaled from its own scale."""
    steps = [whole(x, scale_of(source)[0]) for x, source in zip(tensors, sources, strict=True)]

    def exact(scale: Any) -> Any:
        ratios = [wide(scale_of(source)[0]) / wide(scale) for source in sources]
        return tf.concat([real(rescaled(x, ratio), scale) for x, ratio in zip(steps, ratios, strict=True)], -1)

    return exact

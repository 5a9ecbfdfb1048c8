"""Layers that join tensors: sums, products, concatenations."""

from __future__ import annotations

from typing import Any

from xnn_tf.quantization.strategy import Strategy, register_strategy

PAIRWISE = {"Add": lambda a, b: a + b, "Multiply": lambda a, b: a * b}
MOVING = ("Concatenate", "Maximum", "Minimum")


@register_strategy
class MergingStrategy(Strategy):
    """Rounds the result, behind the activation that is fused with it. Of more than two summands or factors each
    intermediate result is rounded as well. A concatenation of tensors that have one range has that range.
    """

    fuses = True

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        if type(wrapper.layer).__name__ in PAIRWISE:
            for index in range(len(shapes) - 2):
                self.add_range(wrapper, f"partial_{index}")
        self.add_range(wrapper, "output")

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        layer = wrapper.layer
        join = PAIRWISE.get(type(layer).__name__)
        if join is None or len(inputs) < 3:
            y = layer.call(inputs)
        else:
            y = inputs[0]
            for index, x in enumerate(inputs[1:]):
                y = join(y, x)
                if index < len(inputs) - 2:
                    y = self.ranges[f"partial_{index}"](y, training)
        if wrapper.activation is not None:
            y = wrapper.activation(y)
        return self.output(y, training)

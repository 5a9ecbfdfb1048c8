"""Embedding tables: one scale for the table and for what is looked up in it."""

from __future__ import annotations

from typing import Any

from xnn_tf.quantization.ranges import TableRange
from xnn_tf.quantization.strategy import Strategy, register_strategy


@register_strategy
class EmbeddingStrategy(Strategy):
    """From the table's smallest to its largest number. Only the rows that are looked up are rounded."""

    integer_inputs = False
    rounds_weights = False

    def build(self, wrapper: Any, shapes: list[tuple[int | None, ...]]) -> None:
        self.ranges["output"] = TableRange(wrapper.layer.embeddings, self.settings.activations)

    def call(self, wrapper: Any, inputs: Any, sources: list[Any], training: bool, **arguments: Any) -> Any:
        return self.output(wrapper.layer.call(inputs), training)

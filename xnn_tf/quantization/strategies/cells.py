"""What one call of a recurrent layer is made of, whatever its gates and states are rounded to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from xnn_tf.quantization.strategy import Strategy


class Cell(ABC):
    """One call of the layer, with its rounded weights.

    range: the range of a name. state: the first of the states, for its shape.
    """

    step: Callable[[Any, Any], tuple[Any, list[Any]]]
    """(what the inputs contribute, states) -> (result, states), of one step."""

    def __init__(self, layer: Any, wrapper: Any, ranges: Callable[[str], Any], state: Any, training: bool):
        self._layer, self._cell, self._training = layer, layer.cell, training
        self.range = ranges
        self._kernel, steps = wrapper.quantized(self._cell.kernel)
        self._kernel_steps = tf.reshape(steps, [-1])
        self._recurrent, steps = wrapper.quantized(self._cell.recurrent_kernel)
        self._recurrent_steps = tf.reshape(steps, [-1])
        self._bias, self._recurrent_bias = _biases(self._cell)
        self._reset_from = 2 * layer.units if resets_before(layer) else None
        self._dropped = self._mask(tf.ones_like(state), self._cell.recurrent_dropout)
        self.step = getattr(self, f"_{type(layer).__name__.lower()}")

    @classmethod
    @abstractmethod
    def add_ranges(cls, strategy: Strategy, wrapper: Any, layer: Any, prefix: str) -> None:
        """Give the strategy those that calls need, their names behind the prefix."""

    def begin(self, states: list[Any]) -> list[Any]:
        """The states that the layer begins with, as steps take them."""
        return states

    @abstractmethod
    def of_inputs(self, x: Any, source: Any) -> Any:
        """What the inputs contribute to all steps. source: the range of x, which is (batch, time, features)."""

    @abstractmethod
    def see(self, every: Any, projected: Any, states: list[Any]) -> None:
        """Let the ranges follow what the steps had. every: their results, in the order of the steps. projected:
        `of_inputs`. states: the first ones.
        """

    def result(self, y: Any) -> Any:
        """The layer's result, of what steps gave."""
        return y

    def dropped_out(self, x: Any) -> Any:
        """The inputs, some of them 0, the same ones in all steps."""
        mask = self._mask(tf.ones_like(x[:, :1]), self._cell.dropout)
        return x if mask is None else x * mask

    def _mask(self, ones: Any, rate: float) -> Any:
        """One for all steps and gates; None where nothing is dropped."""
        return tf.nn.dropout(ones, rate) if self._training and rate > 0 else None


def resets_before(layer: Any) -> bool:
    """Whether it is a GRU whose state is reset before it is multiplied."""
    return type(layer).__name__ == "GRU" and not layer.reset_after


def _biases(cell: Any) -> tuple[Any, Any]:
    """(of the inputs' product, of the state's), None for those that are not there."""
    if not cell.use_bias:
        return None, None
    bias = tf.convert_to_tensor(cell.bias)
    return (bias[0], bias[1]) if len(bias.shape) == 2 else (bias, None)

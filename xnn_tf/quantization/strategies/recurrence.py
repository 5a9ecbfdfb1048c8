"""One recurrent layer through time.

What the inputs contribute is one product for all time steps, before the loop. `keras.backend.rnn` of either Keras runs
the loop, so that masks, directions and unrolling are as they were.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.keras_compat import require_tensorflow_keras
from xnn_tf.quantization.observing import is_observing
from xnn_tf.quantization.strategies.cells import Cell
from xnn_tf.quantization.strategies.float_gates import FloatGates
from xnn_tf.quantization.strategies.int16_gates import Int16Gates, has_int16_form
from xnn_tf.quantization.strategy import Strategy

KINDS = ("LSTM", "GRU", "SimpleRNN")


def known(layer: Any) -> bool:
    """Whether it is a recurrent layer whose cell is known here."""
    own = type(layer).__module__.partition(".")[0] in ("keras", "tf_keras")
    return own and type(layer).__name__ in KINDS and not getattr(layer, "time_major", False)


class Recurrence:
    """prefix: of the names of its ranges, where the wrapped layer holds several recurrent ones."""

    def __init__(self, strategy: Strategy, wrapper: Any, layer: Any, prefix: str = ""):
        self._ranges, self._prefix = strategy.ranges, prefix
        self._layer, self._cell = layer, cell_of(layer)
        self._cell.add_ranges(strategy, wrapper, layer, prefix)

    def __call__(
        self, wrapper: Any, x: Any, source: Any, initial: Any, mask: Any, training: bool
    ) -> tuple[Any, list[Any]]:
        """(results of the steps, or of the last one, as the layer gives them, and states), of the range `result`.

        source: the range of x. initial: states, or the only one, None for those that the layer begins with.
        """
        layer = self._layer
        if initial is None:
            initial = self._initial(x)
        states = list(initial) if isinstance(initial, (list, tuple)) else [initial]
        cell = self._cell(layer, wrapper, self._range, states[0], training)
        states = cell.begin(states)
        projected, seeing = cell.of_inputs(x, source), training or (is_observing() and self._cell is FloatGates)
        last, every, after = _loop(layer, cell.step, projected, states, mask, seeing or layer.return_sequences)
        if seeing:
            cell.see(every, projected, states)
        if layer.stateful:
            for variable, state in zip(layer.states, after, strict=True):
                variable.assign(tf.cast(state, variable.dtype))
        return cell.result(every if layer.return_sequences else last), list(after)

    @property
    def result(self) -> Any:
        """The range of the results, None where they are not rounded."""
        return self._range("hidden") if self._cell is Int16Gates else None

    def _range(self, name: str) -> Any:
        return self._ranges[self._prefix + name]

    def _initial(self, x: Any) -> list[Any]:
        layer = self._layer
        if layer.stateful:
            return [tf.convert_to_tensor(state) for state in layer.states]
        return [tf.zeros((tf.shape(x)[0], layer.units)) for _ in range(2 if type(layer).__name__ == "LSTM" else 1)]


def cell_of(layer: Any) -> type[Cell]:
    """How its steps are computed."""
    return Int16Gates if has_int16_form(layer) else FloatGates


def _loop(layer: Any, step: Any, x: Any, states: list[Any], mask: Any, every: bool) -> tuple[Any, Any, tuple[Any, ...]]:
    """(last result, all of them where `every`, states). x: (batch, time, …)."""
    if require_tensorflow_keras(layer) == "keras":
        from keras.src.backend import rnn
    else:
        from tf_keras.backend import rnn
    return rnn(
        step,
        x,
        states,
        go_backwards=layer.go_backwards,
        mask=mask,
        unroll=layer.unroll,
        input_length=x.shape[1],
        zero_output_for_mask=layer.zero_output_for_mask,
        return_all_outputs=every,
    )

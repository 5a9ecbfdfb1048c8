"""One recurrent layer through time: its products of matrices in integers, gates and states in float32.

What the inputs contribute is one product for all time steps, before the loop. In the loop each step multiplies the
state, rounded. The state itself goes from step to step as float32: in 8 bits the sum of many small changes would be
lost. `keras.backend.rnn` of either Keras runs the loop, so that masks, directions and unrolling are as they were.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.keras_compat import require_tensorflow_keras
from xnn_tf.quantization.integers import Exact
from xnn_tf.quantization.observing import is_observing
from xnn_tf.quantization.ranges import LEARNED_RATE, rounded
from xnn_tf.quantization.strategies.products import Result, times_matrix
from xnn_tf.quantization.strategy import Strategy

KINDS = ("LSTM", "GRU", "SimpleRNN")
PRODUCTS = ("input_product", "state", "state_product")
RESET = ("reset", "reset_product")


def known(layer: Any) -> bool:
    """Whether it is a recurrent layer whose cell is known here."""
    own = type(layer).__module__.partition(".")[0] in ("keras", "tf_keras")
    return own and type(layer).__name__ in KINDS and not getattr(layer, "time_major", False)


class Recurrence:
    """prefix: of the names of its ranges, where the wrapped layer holds several recurrent ones."""

    def __init__(self, strategy: Strategy, wrapper: Any, layer: Any, prefix: str = ""):
        self._ranges, self._settings = strategy.ranges, strategy.settings
        self._layer, self._prefix = layer, prefix
        self._resets_before = type(layer).__name__ == "GRU" and not layer.reset_after
        for name in PRODUCTS + (RESET if self._resets_before else ()):
            strategy.add_range(wrapper, prefix + name)

    def __call__(
        self, wrapper: Any, x: Any, source: Any, initial: Any, mask: Any, training: bool
    ) -> tuple[Any, list[Any]]:
        """(results of the steps, or of the last one, as the layer gives them, and states), not rounded.

        source: the range of x. initial: states, or the only one, None for those that the layer begins with.
        """
        layer, seeing = self._layer, training or is_observing()
        if initial is None:
            initial = self._initial(x)
        states = list(initial) if isinstance(initial, (list, tuple)) else [initial]
        pass_ = _Pass(self, wrapper, states[0], training)
        projected = pass_.of_inputs(x, source)
        last, every, after = _loop(layer, pass_.step, projected, states, mask, seeing or layer.return_sequences)
        if seeing:
            pass_.see(every, projected, states[0])
        if layer.stateful:
            for variable, state in zip(layer.states, after, strict=True):
                variable.assign(tf.cast(state, variable.dtype))
        return (every if layer.return_sequences else last), list(after)

    def range(self, name: str) -> Any:
        return self._ranges[self._prefix + name]

    def _initial(self, x: Any) -> list[Any]:
        layer = self._layer
        if layer.stateful:
            return [tf.convert_to_tensor(state) for state in layer.states]
        return [tf.zeros((tf.shape(x)[0], layer.units)) for _ in range(2 if type(layer).__name__ == "LSTM" else 1)]


class _Pass:
    """One call of the layer, with its rounded weights."""

    def __init__(self, recurrence: Recurrence, wrapper: Any, state: Any, training: bool):
        self._layer, self._training = recurrence._layer, training
        self._range, self._learned = recurrence.range, recurrence._settings.ranges == "learned"
        self._cell = cell = self._layer.cell
        self._kernel, steps = wrapper.quantized(cell.kernel)
        self._kernel_steps = tf.reshape(steps, [-1])
        self._recurrent, steps = wrapper.quantized(cell.recurrent_kernel)
        self._recurrent_steps = tf.reshape(steps, [-1])
        self._bias, self._recurrent_bias = _biases(cell)
        self._reset_from = 2 * self._layer.units if recurrence._resets_before else None
        self._dropped = self._mask(tf.ones_like(state), cell.recurrent_dropout)
        self.step = getattr(self, f"_{type(self._layer).__name__.lower()}")

    def of_inputs(self, x: Any, source: Any) -> Any:
        """What the inputs contribute to all steps, rounded, and the bias, which is not: the 1 of a forget gate would
        widen the range of products that are far smaller.
        """
        dropped = self._mask(tf.ones_like(x[:, :1]), self._cell.dropout)
        x = x if dropped is None else x * dropped
        target, training = self._range("input_product"), self._training
        y, exact = times_matrix(x, self._kernel, self._kernel_steps, None, (source, target), training)
        y = target(y, training, exact)
        return y if self._bias is None else y + self._bias

    def see(self, every: Any, projected: Any, state: Any) -> None:
        """Let the ranges follow what the steps had. every: their results, in the order of the steps."""
        before = tf.concat([state[:, tf.newaxis], every[:, :-1]], 1)
        product = self._follow("state_product", *self._product("state", self._follow("state", before)))
        if self._reset_from is not None:
            z = tf.reverse(projected, [1]) if self._layer.go_backwards else projected
            _, r, _ = tf.split(z, 3, -1)
            reset = self._cell.recurrent_activation(r + tf.split(product, 2, -1)[1]) * before
            self._follow("reset_product", *self._product("reset", self._follow("reset", reset)))

    # ---- cells ----

    def _lstm(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        h, c = states[:2]
        gate, activation = self._cell.recurrent_activation, self._cell.activation
        let_in, forget, candidate, let_out = tf.split(x + self._of_state(h), 4, -1)
        c = gate(forget) * c + gate(let_in) * activation(candidate)
        h = gate(let_out) * activation(c)
        return h, [h, c]

    def _gru(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        (h, *_) = states
        gate, activation = self._cell.recurrent_activation, self._cell.activation
        update, reset, candidate = tf.split(x, 3, -1)
        if self._reset_from is None:
            again = tf.split(self._of_state(h), 3, -1)
            candidate += gate(reset + again[1]) * again[2]
        else:
            again = tf.split(self._of_state(h), 2, -1)
            candidate += self._of_reset(gate(reset + again[1]) * h)
        z = gate(update + again[0])
        h = z * h + (1 - z) * activation(candidate)
        return h, [h]

    def _simplernn(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        h = self._cell.activation(x + self._of_state(states[0]))
        return h, [h]

    # ---- products in the loop ----

    def _of_state(self, h: Any) -> Any:
        h = h if self._dropped is None else h * self._dropped
        return self._rounded("state_product", *self._product("state", self._rounded("state", h)))

    def _of_reset(self, h: Any) -> Any:
        return self._rounded("reset_product", *self._product("reset", self._rounded("reset", h)))

    def _product(self, name: str, x: Any) -> Result:
        """x, which is rounded to the range of that name, times its columns of the recurrent kernel."""
        columns = slice(None)
        if self._reset_from is not None:
            columns = slice(self._reset_from, None) if name == "reset" else slice(None, self._reset_from)
        ranges = self._range(name), self._range(f"{name}_product")
        steps, bias = self._recurrent_steps[columns], self._recurrent_bias
        return times_matrix(x, self._recurrent[:, columns], steps, bias, ranges, self._training)

    def _rounded(self, name: str, x: Any, exact: Exact | None = None) -> Any:
        """x rounded in a step of the loop, where ranges cannot follow it. Not at all while the range is unknown."""
        own = self._range(name)
        if not self._training:
            return own(x, False, exact)
        low, high = own.ends()
        if self._learned:
            low, high = (LEARNED_RATE * end + tf.stop_gradient((1 - LEARNED_RATE) * end) for end in (low, high))
        else:
            low, high = tf.stop_gradient(low), tf.stop_gradient(high)
        unknown = tf.math.is_nan(low)
        low, high = tf.where(unknown, -1.0, low), tf.where(unknown, 1.0, high)
        return tf.where(unknown, x, rounded(x, low, high, own.bits, True, exact))

    def _follow(self, name: str, x: Any, exact: Exact | None = None) -> Any:
        return self._range(name)(tf.stop_gradient(x), self._training, exact)

    def _mask(self, ones: Any, rate: float) -> Any:
        """One for all steps and gates; None where nothing is dropped."""
        return tf.nn.dropout(ones, rate) if self._training and rate > 0 else None


def _biases(cell: Any) -> tuple[Any, Any]:
    """(of the inputs' product, of the state's), None for those that are not there."""
    if not cell.use_bias:
        return None, None
    bias = tf.convert_to_tensor(cell.bias)
    return (bias[0], bias[1]) if len(bias.shape) == 2 else (bias, None)


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

"""Steps of recurrent layers with a function that int16 has no form for: products of matrices in integers, gates and
states in float32.

The state itself goes from step to step as float32: in 8 bits the sum of many small changes would be lost.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.integers import Exact
from xnn_tf.quantization.ranges import rounded
from xnn_tf.quantization.strategies.cells import Cell, resets_before
from xnn_tf.quantization.strategies.products import Result, times_matrix
from xnn_tf.quantization.strategy import Strategy

PRODUCTS = ("input_product", "state", "state_product")
RESET = ("reset", "reset_product")


class FloatGates(Cell):
    """Also rounds with the activations' bits what goes into products, and the products."""

    @classmethod
    def add_ranges(cls, strategy: Strategy, wrapper: Any, layer: Any, prefix: str) -> None:
        for name in PRODUCTS + (RESET if resets_before(layer) else ()):
            strategy.add_range(wrapper, prefix + name)

    def of_inputs(self, x: Any, source: Any) -> Any:
        """What the inputs contribute to all steps, rounded, and the bias, which is not: the 1 of a forget gate would
        widen the range of products that are far smaller.
        """
        x, target, training = self.dropped_out(x), self.range("input_product"), self._training
        y, exact = times_matrix(x, self._kernel, self._kernel_steps, None, (source, target), training)
        y = target(y, training, exact)
        return y if self._bias is None else y + self._bias

    def see(self, every: Any, projected: Any, states: list[Any]) -> None:
        """Let the ranges follow what the steps had. every: their results, in the order of the steps."""
        before = tf.concat([states[0][:, tf.newaxis], every[:, :-1]], 1)
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
        ranges = self.range(name), self.range(f"{name}_product")
        steps, bias = self._recurrent_steps[columns], self._recurrent_bias
        return times_matrix(x, self._recurrent[:, columns], steps, bias, ranges, self._training)

    def _rounded(self, name: str, x: Any, exact: Exact | None = None) -> Any:
        """x rounded in a step of the loop, where ranges cannot follow it. Not at all while the range is unknown."""
        own = self.range(name)
        if not self._training:
            return own(x, False, exact)
        low, high = own.ends_in_training()
        unknown = tf.math.is_nan(low)
        low, high = tf.where(unknown, -1.0, low), tf.where(unknown, 1.0, high)
        return tf.where(unknown, x, rounded(x, low, high, own.bits, True, exact))

    def _follow(self, name: str, x: Any, exact: Exact | None = None) -> Any:
        return self.range(name)(tf.stop_gradient(x), self._training, exact)

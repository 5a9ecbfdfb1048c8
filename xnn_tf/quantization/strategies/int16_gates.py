"""Steps of recurrent layers with int16 inside: states, gates, and what they are computed of.

Steps of all that is added are powers of two, and one for what meets in a sum: sums are exact then, and what is rounded
are products alone. h' = z h + (1 - z) c of a GRU is computed as c + z (h - c), which needs a product less.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from xnn_tf.quantization.ranges import DoubledRange, PowerRange, Range, rounded
from xnn_tf.quantization.strategies.cells import Cell
from xnn_tf.quantization.strategies.functions import function_name
from xnn_tf.quantization.strategies.int16_arithmetic import (
    BELOW,
    FUNCTIONS,
    Arithmetic,
    InTraining,
    Outside,
    result_range,
)
from xnn_tf.quantization.strategies.products import times_matrix
from xnn_tf.quantization.strategy import Strategy

GATES_REACH = 1.0
"""What the gates' range has at least: beyond steps of 2**-15 the engine's tables do not tell numbers apart."""


def has_int16_form(layer: Any) -> bool:
    """Whether the engine has int16 forms of all that the cell computes."""
    gate = function_name(getattr(layer.cell, "recurrent_activation", "sigmoid"))
    return function_name(layer.cell.activation) in FUNCTIONS and gate in ("sigmoid", "str")


class Int16Gates(Cell):
    """Ranges: "gates" of the products and of their sums, "cell" (LSTM) and "hidden" of states and what they are sums
    of, "difference" (GRU) of the state and what follows it.
    """

    def __init__(self, layer: Any, wrapper: Any, ranges: Any, state: Any, training: bool):
        super().__init__(layer, wrapper, ranges, state, training)
        self._function = function_name(layer.cell.activation)
        self._arithmetic: Arithmetic = Outside(ranges, _names(layer))
        if training:
            exact = wrapper.strategy.settings.activations == 16
            self._arithmetic = self._rounding = InTraining(ranges, _names(layer), exact)
        self._of_state = self._matrix(slice(None, self._reset_from), self._recurrent_bias)
        if self._reset_from is not None:
            self._of_reset = self._matrix(slice(self._reset_from, None), None)

    @classmethod
    def add_ranges(cls, strategy: Strategy, wrapper: Any, layer: Any, prefix: str) -> None:
        kind, function = type(layer).__name__, function_name(layer.cell.activation)

        def power(name: str, least: float) -> PowerRange:
            return PowerRange(wrapper, prefix + name, strategy.settings, least)

        ranges: dict[str, Range] = {"gates": power("gates", GATES_REACH)}
        if kind == "LSTM":
            ranges["cell"], ranges["hidden"] = power("cell", 0.0), power("hidden", 0.0)
        elif kind == "GRU":
            hidden = power("hidden", 1.0)
            ranges["hidden"], ranges["difference"] = hidden, DoubledRange(hidden)
        else:
            ranges["hidden"] = result_range(function) if function in BELOW else ranges["gates"]
        strategy.ranges.update({prefix + name: each for name, each in ranges.items()})

    def begin(self, states: list[Any]) -> list[Any]:
        if not self._training:
            return states
        return [self._rounding.rounded(name, state) for name, state in zip(("hidden", "cell"), states)]  # noqa: B905

    def of_inputs(self, x: Any, source: Any) -> Any:
        x, target = self.dropped_out(x), self.range("gates")
        y, exact = times_matrix(x, self._kernel, self._kernel_steps, self._bias, (source, target), self._training)
        if not self._training:
            return target(y, False, exact)
        self._unrounded = y
        low, high = target.ends_in_training()
        unknown = tf.math.is_nan(high)
        low, high = tf.where(unknown, -1.0, low), tf.where(unknown, 1.0, high)
        return tf.where(unknown, y, rounded(y, low, high, 16, True, exact if self._cell.dropout == 0 else None))

    def result(self, y: Any) -> Any:
        return y[..., : self._layer.units] if self._has_cell and y is not None else y

    def see(self, every: Any, projected: Any, states: list[Any]) -> None:
        x, every = tf.stop_gradient(self._unrounded), tf.stop_gradient(every)
        if self._layer.go_backwards:
            x = tf.reverse(x, [1])
        h = self.result(every)
        hidden = tf.concat([states[0][:, tf.newaxis], h], 1)
        columns = slice(None, self._reset_from)
        product = tf.tensordot(hidden[:, :-1], self._recurrent[:, columns], 1)
        if self._recurrent_bias is not None:
            product += self._recurrent_bias
        getattr(self, f"_see_{type(self._layer).__name__.lower()}")(x, product, hidden, every, states)

    # ---- cells ----

    def _lstm(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        on, (h, c) = self._arithmetic, self._known(states)
        z = on.plus("gates", on.known("gates", x), self._of_state(h))
        let_in, forget, candidate, let_out = on.functions("gates", z, ["sigmoid", "sigmoid", self._function, "sigmoid"])
        c = on.plus("cell", on.times("cell", forget, c), on.times("cell", let_in, candidate))
        h = on.times("hidden", let_out, *on.functions("cell", c, [self._function]))
        return (tf.concat([h, c], -1) if self._training else h), [h, c]

    def _see_lstm(self, x: Any, product: Any, hidden: Any, every: Any, states: list[Any]) -> None:
        z = x + product
        self.range("gates").follow(x, product, z)
        let_in, _, candidate, _ = tf.split(z, 4, -1)
        added = tf.sigmoid(let_in) * FUNCTIONS[self._function](candidate)
        self.range("cell").follow(states[1], every[..., self._layer.units :], added)
        self.range("hidden").follow(hidden)

    def _gru(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        on, (h,), units = self._arithmetic, self._known(states), self._layer.units
        of_gates, candidate = tf.split(on.known("gates", x), [2 * units, units], -1)
        again = self._of_state(h)
        if self._reset_from is None:
            again, product = tf.split(again, [2 * units, units], -1)
        update, reset = on.functions("gates", on.plus("gates", of_gates, again), ["sigmoid", "sigmoid"])
        product = (
            on.times("gates", reset, product)
            if self._reset_from is None
            else self._of_reset(on.times("hidden", reset, h))
        )
        (new,) = on.functions("gates", on.plus("gates", candidate, product), [self._function])
        kept = on.times("hidden", update, on.minus("difference", h, new))
        h = on.plus("hidden", new, kept, finer=True)
        return h, [h]

    def _see_gru(self, x: Any, product: Any, hidden: Any, every: Any, states: list[Any]) -> None:
        units = self._layer.units
        of_gates, candidate = tf.split(x, [2 * units, units], -1)
        again, rest = tf.split(product, [2 * units, product.shape[-1] - 2 * units], -1)
        z = of_gates + again
        _, reset = tf.split(tf.sigmoid(z), 2, -1)
        if self._reset_from is None:
            rest = reset * rest
        else:
            rest = tf.tensordot(reset * hidden[:, :-1], self._recurrent[:, self._reset_from :], 1)
        self.range("gates").follow(x, product, rest, z, candidate + rest)
        self.range("hidden").follow(hidden)

    def _simplernn(self, x: Any, states: Any) -> tuple[Any, list[Any]]:
        on, (h,) = self._arithmetic, self._known(states)
        again = self._of_state(h)
        if self._function not in BELOW:
            h = on.plus("gates", on.known("gates", x), again, self._function)
        else:
            (h,) = on.functions("gates", on.plus("gates", on.known("gates", x), again), [self._function])
        return h, [h]

    def _see_simplernn(self, x: Any, product: Any, hidden: Any, every: Any, states: list[Any]) -> None:
        self.range("gates").follow(x, product, x + product)

    # ---- what they are made of ----

    @property
    def _has_cell(self) -> bool:
        return self._training and type(self._layer).__name__ == "LSTM"

    def _known(self, states: Any) -> list[Any]:
        return [self._arithmetic.known(name, state) for name, state in zip(("hidden", "cell"), states)]  # noqa: B905

    def _matrix(self, columns: slice, bias: Any) -> Any:
        """x -> x times these columns of the recurrent kernel."""
        kernel, steps = self._recurrent[:, columns], self._recurrent_steps[columns]
        multiply = self._arithmetic.matrix("gates", self.range("hidden"), kernel, steps, bias)
        return multiply if self._dropped is None else lambda h: multiply(h * self._dropped)


def _names(layer: Any) -> list[str]:
    """Of the ranges that steps of the layer round to."""
    return ["gates", "hidden", *{"LSTM": ["cell"], "GRU": ["difference"]}.get(type(layer).__name__, [])]

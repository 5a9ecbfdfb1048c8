"""SimpleRNN, LSTM and GRU: unit j is column j of each gate, its bias, and row j of the recurrent kernel.

Where these columns and the bias are zero and the state starts at zero, the state stays zero: LSTM adds tanh(0), GRU
mixes zero with tanh(0). So a unit can be removed as a neuron can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnn_tf.channels.rules.base import (
    Affine,
    Constants,
    Keep,
    LinkedCall,
    Rule,
    count_of,
    expect,
    numbers,
    owner,
    unknown,
)
from xnn_tf.channels.symbolic import keras_class
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links, Role

_GATES = {"SimpleRNN": 1, "LSTM": 4, "GRU": 3}
_ZERO_AT_ZERO = {"linear", "tanh", "relu", "relu6", "elu", "selu", "swish", "silu", "gelu", "softsign", "hard_tanh"}


class Recurrent(Rule):
    """kernel (inputs, gates · units), recurrent_kernel (units, gates · units), bias (gates · units), perhaps twice."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        layer, cell = call.layer, call.layer.cell
        reason = f"{call.path} is stateful or starts from a given state, or its activation is not zero at zero"
        given = len(inputs) != 1 or layer.stateful or getattr(cell.activation, "__name__", "") not in _ZERO_AT_ZERO
        if given:
            for channels in inputs:
                links.fix(channels, reason)
        source = expect(links, call, inputs[0], -1, int(cell.kernel.shape[0]))
        assert source is not None
        known = links.weights.get(id(cell.recurrent_kernel))
        units = links.new(layer.units) if known is None else known.axes[0]
        gates = np.tile(units, _GATES[keras_class(layer)])
        for name, variable in (("kernel", cell.kernel), ("recurrent_kernel", cell.recurrent_kernel)):
            rows = source if name == "kernel" else units
            links.tie(variable, 0, rows, Role.ROW, owner(call, name, cell.name), is_kernel=True)
            links.tie(variable, 1, gates, Role.COLUMN, owner(call, name, cell.name), is_kernel=True)
        if cell.bias is not None:
            links.tie(cell.bias, len(cell.bias.shape) - 1, gates, Role.CHANNEL, owner(call, "bias", cell.name))
        if given:
            links.fix(units, reason)
        first = len(call.outputs[0].shape) - 1
        return [Channels(first if index == 0 else 1, units) for index in range(len(call.outputs))]

    def _input(self, at: LinkedCall) -> Affine:
        return Affine(numbers(at.call.layer.cell.kernel)[None], uniform=False)

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        layer, cell = at.call.layer, at.call.layer.cell
        if len(inputs) != 1 or inputs[0] is None or getattr(cell.activation, "__name__", "") not in _ZERO_AT_ZERO:
            return [unknown(channels) for channels in at.outputs]
        driven = ~(self._input(at).results(inputs[0], 0.0) == 0)
        driven |= numbers(cell.recurrent_kernel).any(axis=0)
        if cell.bias is not None:
            driven |= numbers(cell.bias).reshape(-1, len(driven)).any(axis=0)
        zero = ~driven.reshape(-1, layer.units).any(axis=0)
        return [np.where(zero, 0.0, np.nan) for _ in at.outputs]

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        values = inputs[0]
        return [None if values is None else self._input(at).live(values), *[None] * (len(inputs) - 1)]

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        assert at.outputs[0] is not None
        return {**config, "units": count_of(at.outputs[0].ids, keep)}

    def live_results(self, at: LinkedCall, results: Sequence[Constants]) -> np.ndarray | None:
        rows = numbers(at.call.layer.cell.recurrent_kernel).any(axis=1)
        return None if results[0] is None else rows & ~(results[0] == 0)

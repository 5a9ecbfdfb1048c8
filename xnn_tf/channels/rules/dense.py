"""Dense, its einsum form, and Embedding."""

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
    activated,
    activates_elementwise,
    count_of,
    expect,
    fixed_results,
    numbers,
    owner,
    unknown,
)
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links, Role


class Dense(Rule):
    """kernel (inputs, units), over the last axis."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        layer, axis = call.layer, len(call.inputs[0].shape) - 1
        source = expect(links, call, inputs[0], axis, int(layer.kernel.shape[0]))
        assert source is not None
        results = links.columns(layer.kernel, 1, owner(call, "kernel"))
        links.tie(layer.kernel, 0, source, Role.ROW, owner(call, "kernel"), is_kernel=True)
        links.tie(layer.bias, 0, results, Role.CHANNEL, owner(call, "bias"))
        if not activates_elementwise(layer):
            links.fix(results, f"the activation of {call.path} mixes channels, or is not known not to")
        return [Channels(axis, results)]

    @staticmethod
    def _affine(layer: Any) -> Affine:
        return Affine(numbers(layer.kernel)[None], uniform=True)

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        values, layer = inputs[0], at.call.layer
        if values is None or at.outputs[0] is None or not activates_elementwise(layer):
            return [unknown(at.outputs[0])]
        bias = 0.0 if layer.bias is None else numbers(layer.bias)
        return [activated(layer, self._affine(layer).results(values, bias))]

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        return [None if inputs[0] is None else self._affine(at.call.layer).live(inputs[0])]

    def bias_for(self, at: LinkedCall, inputs: Sequence[Constants], removed: Sequence[np.ndarray]) -> np.ndarray | None:
        return None if inputs[0] is None else self._affine(at.call.layer).added(inputs[0], removed[0])

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        assert at.outputs[0] is not None
        return {**config, "units": count_of(at.outputs[0].ids, keep)}


class Embedding(Rule):
    """embeddings (words, dimensions): the dimensions are channels of the result; nothing of the input can go."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        links.fix(inputs[0], f"{call.path} looks its input up")
        if getattr(call.layer, "mask_zero", False):
            return fixed_results(links, call, f"{call.path} masks its result")
        results = links.columns(call.layer.embeddings, 1, owner(call, "embeddings"))
        return [Channels(len(call.outputs[0].shape) - 1, results)]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        table = numbers(at.call.layer.embeddings)
        return [np.where((table == table[0]).all(axis=0), table[0], np.nan)]

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        assert at.outputs[0] is not None
        return {**config, "output_dim": count_of(at.outputs[0].ids, keep)}

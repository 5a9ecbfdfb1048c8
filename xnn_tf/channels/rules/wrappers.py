"""TimeDistributed, and whatever is not understood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xnn_tf.channels.rules.base import Constants, Keep, LinkedCall, Rule, fixed_results
from xnn_tf.channels.tracing import Call, Value
from xnn_tf.channels.units import Channels, Links


class Opaque(Rule):
    """What may read and mix any channels: those of its inputs and results cannot be removed."""

    def __init__(self, reason: str = "is not understood") -> None:
        self._reason = reason

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        reason = f"{call.path} ({type(call.layer).__name__}) {self._reason}"
        for channels in inputs:
            links.fix(channels, reason)
        return fixed_results(links, call, reason)


class TimeDistributed(Rule):
    """A layer applied to each step: axis 1 of inputs and results is not its own."""

    def __init__(self, inner: Rule) -> None:
        self._inner = inner

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        if any(channels is not None and channels.axis == 1 for channels in inputs):
            return Opaque("is applied along the axis where the channels lie").link(links, call, inputs)
        results = self._inner.link(links, self._call(call), [_shifted(channels, -1) for channels in inputs])
        return [_shifted(channels, 1) for channels in results]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        return self._inner.constants(self._at(at), inputs)

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        return self._inner.live(self._at(at), inputs)

    def bias_for(self, at: LinkedCall, inputs: Sequence[Constants], removed: Sequence[np.ndarray]) -> np.ndarray | None:
        return self._inner.bias_for(self._at(at), inputs, removed)

    def live_results(self, at: LinkedCall, results: Sequence[Constants]) -> np.ndarray | None:
        return self._inner.live_results(self._at(at), results)

    def with_bias(self, config: dict[str, Any]) -> dict[str, Any]:
        inner = config["layer"]
        return {**config, "layer": {**inner, "config": self._inner.with_bias(inner["config"])}}

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        inner = config["layer"]
        return {**config, "layer": {**inner, "config": self._inner.resized(inner["config"], self._at(at), keep)}}

    @staticmethod
    def _call(call: Call) -> Call:
        inputs = tuple(Value((value.shape[0], *value.shape[2:])) for value in call.inputs)
        outputs = tuple(Value((value.shape[0], *value.shape[2:])) for value in call.outputs)
        layer = call.layer.layer
        return replace(call, layer=layer, path=f"{call.path}/{layer.name}", inputs=inputs, outputs=outputs)

    def _at(self, at: LinkedCall) -> LinkedCall:
        inputs = [_shifted(channels, -1) for channels in at.inputs]
        return LinkedCall(self._call(at.call), self._inner, inputs, [_shifted(c, -1) for c in at.outputs])


def _shifted(channels: Channels | None, by: int) -> Channels | None:
    return None if channels is None else Channels(channels.axis + by, channels.ids)

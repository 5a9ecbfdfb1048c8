"""Layers of several inputs: element by element (Add, Multiply, …), and Concatenate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xnn_tf.channels.rules.base import Constants, LinkedCall, Rule, fixed_results, unknown
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links


class Merge(Rule):
    """Each channel of the result is of the same channel of every input. An input of one channel serves all."""

    def __init__(self, combine: Callable[[np.ndarray], np.ndarray]) -> None:
        """combine: constants (inputs, channels) -> (channels,), NaN where the result is not constant."""
        self._combine = combine

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        if len(inputs) == 1 and all(np.ndim(a) == 0 and np.isscalar(a) for a in call.arguments):
            return [inputs[0]]  # with a number
        whole = [c for c in inputs if c is not None and len(c.ids) > 1]
        ranks = {len(value.shape) for value in call.inputs}
        same = len({(c.axis, len(c.ids)) for c in whole}) == 1 and len(ranks) == 1 and not call.arguments
        if None in inputs or len(inputs) < 2 or not (same or not whole):
            reason = f"{call.path} merges inputs whose channels do not lie alike"
            for channels in inputs:
                links.fix(channels, reason)
            return fixed_results(links, call, reason)
        first = (whole or [c for c in inputs if c is not None])[0]
        for channels in inputs:
            assert channels is not None
            if len(channels.ids) == len(first.ids):
                links.unite(first.ids, channels.ids)
            else:
                links.fix(channels, f"{call.path} uses it for all channels of another input")
        return [first]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        channels = at.outputs[0]
        if channels is None or any(values is None for values in inputs) or len(inputs) < 2 or at.call.arguments:
            return [unknown(channels)]
        size = len(channels.ids)
        if any(values is not None and len(values) not in (1, size) for values in inputs):
            return [unknown(channels)]
        return [self._combine(np.stack([np.broadcast_to(v, (size,)) for v in inputs if v is not None]))]


def product(values: np.ndarray) -> np.ndarray:
    """Zero where any factor is zero, whatever the others are."""
    return np.where((values == 0).any(axis=0), 0.0, values.prod(axis=0))


def difference(values: np.ndarray) -> np.ndarray:
    return values[0] - values[1]


class Concatenation(Rule):
    """Along the axis of channels: one after the other. Along another: each channel is one with those of the others."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        there = [c for c in inputs if c is not None]
        axis = int(call.layer.axis) % len(call.inputs[0].shape)
        if len(there) < len(inputs) or len({c.axis for c in there}) != 1:
            reason = f"{call.path} joins inputs whose channels do not lie alike"
            for channels in inputs:
                links.fix(channels, reason)
            return fixed_results(links, call, reason)
        if there[0].axis == axis:
            return [Channels(axis, np.concatenate([c.ids for c in there]))]
        for channels in there[1:]:
            links.unite(there[0].ids, channels.ids)
        return [there[0]]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        there = [values for values in inputs if values is not None]
        if at.outputs[0] is None or len(there) < len(inputs):
            return [unknown(at.outputs[0])]
        if at.outputs[0].axis == int(at.call.layer.axis) % len(at.call.inputs[0].shape):
            joined = np.concatenate(there)
            return [joined if len(joined) == len(at.outputs[0].ids) else unknown(at.outputs[0])]
        stacked = np.stack(there)
        return [np.where((stacked == stacked[0]).all(axis=0), stacked[0], np.nan)]

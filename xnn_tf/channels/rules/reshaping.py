"""Flatten, Reshape and Permute: where the channels lie afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnn_tf.channels.rules.base import Constants, Keep, LinkedCall, Rule, count_of, fixed_results, unknown
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links

Sizes = tuple[int, ...]


class Reshape(Rule):
    """Follows each element of a tensor of known size; otherwise channels must stay the last axis.

    Results have channels along one axis, the last one along which they differ: what differs along others too becomes
    one, so that a rectangle is left whatever is removed.
    """

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels = inputs[0]
        source, target = call.inputs[0].shape[1:], call.outputs[0].shape[1:]
        if channels is None:
            return fixed_results(links, call, f"the number of channels that {call.path} reads is unknown")
        if None in source or None in target:
            if source and target and source[-1] == target[-1] and channels.axis == len(source):
                return [Channels(len(target), channels.ids)]
            reason = f"{call.path} reshapes a tensor of unknown size"
            links.fix(channels, reason)
            return fixed_results(links, call, reason)
        ids = self.rearranged(call, channels.ids, channels.axis)
        axis = _last_varying(ids)
        for other in reversed(range(ids.ndim)):
            if other != axis:
                first = ids.take(0, other)
                if not (ids == np.expand_dims(first, other)).all():
                    links.unite_along(ids, other)
                ids = np.expand_dims(first, other)
        return [Channels(axis + 1, ids.ravel())]

    def rearranged(self, call: Call, per_channel: np.ndarray, axis: int) -> np.ndarray:
        """What belongs to each channel, for each element of the result (without the batch)."""
        source: Sizes = tuple(int(s or 0) for s in call.inputs[0].shape[1:])
        target: Sizes = tuple(int(s or 0) for s in call.outputs[0].shape[1:])
        shape = [1] * len(source)
        shape[axis - 1] = -1
        full = np.broadcast_to(per_channel.reshape(shape), source)
        return self.order(call, full).reshape(target)

    def order(self, call: Call, full: np.ndarray) -> np.ndarray:
        return full

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        values, channels = inputs[0], at.outputs[0]
        if values is None or channels is None:
            return [unknown(channels)]
        if None in at.call.inputs[0].shape[1:] or None in at.call.outputs[0].shape[1:]:
            return [values if len(values) == len(channels.ids) else unknown(channels)]
        assert at.inputs[0] is not None
        full = np.moveaxis(self.rearranged(at.call, values, at.inputs[0].axis), channels.axis - 1, -1)
        full = full.reshape(-1, full.shape[-1])
        return [np.where((full == full[0]).all(axis=0), full[0], np.nan)]

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        result = at.outputs[0]
        if result is None:
            return config
        target = list(config["target_shape"])
        if target[result.axis - 1] not in (-1, None):
            target[result.axis - 1] = count_of(result.ids, keep)
        elif None not in at.call.outputs[0].shape[1:]:  # -1 stands for the channels
            target = [int(s or 0) for s in at.call.outputs[0].shape[1:]]
            target[result.axis - 1] = count_of(result.ids, keep)
        return {**config, "target_shape": tuple(target)}


class Flatten(Reshape):
    """All axes but the batch become one, in the order of channels_last."""

    def order(self, call: Call, full: np.ndarray) -> np.ndarray:
        first = getattr(call.layer, "data_format", None) == "channels_first"
        return np.moveaxis(full, 0, -1) if first and full.ndim > 1 else full

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        return config


class Permute(Rule):
    """Channels lie where their axis went."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels = inputs[0]
        return [None if channels is None else Channels(list(call.layer.dims).index(channels.axis) + 1, channels.ids)]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        return [inputs[0] if at.outputs[0] is not None else None]


def _last_varying(ids: np.ndarray) -> int:
    """The last axis along which numbers differ; the last one where none do."""
    for axis in reversed(range(ids.ndim)):
        if ids.shape[axis] > 1 and not (ids == np.expand_dims(ids.take(0, axis), axis)).all():
            return axis
    return ids.ndim - 1

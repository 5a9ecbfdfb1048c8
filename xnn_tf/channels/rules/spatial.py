"""Layers that move or pool within the axes that are not channels: pooling, padding, cropping, upsampling, repeating."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xnn_tf.channels.rules.base import Constants, LinkedCall, Rule, fixed_results, unknown
from xnn_tf.channels.rules.convolution import channel_axis
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links


class Spatial(Rule):
    """Results are picked from, or are averages of, one channel: its number stays where it is constant."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels, axis = inputs[0], channel_axis(call.layer, len(call.inputs[0].shape))
        if channels is None or channels.axis != axis:
            reason = f"{call.path} works along the axis where the channels lie"
            links.fix(channels, reason)
            return fixed_results(links, call, reason)
        return [Channels(self.result_axis(call, axis), channels.ids)]

    def result_axis(self, call: Call, axis: int) -> int:
        return axis

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        same = inputs[0] is not None and at.outputs[0] is not None and len(inputs[0]) == len(at.outputs[0].ids)
        return [inputs[0] if same else unknown(at.outputs[0])]


class Padding(Spatial):
    """Zeros around: only a constant of zero stays one."""

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        (values,) = super().constants(at, inputs)
        return [None if values is None else np.where(values == 0, 0.0, np.nan)]


class GlobalPooling(Spatial):
    """Of all positions; without keepdims, the channels are all that is left."""

    def result_axis(self, call: Call, axis: int) -> int:
        return axis if getattr(call.layer, "keepdims", False) else 1


class Steps(Rule):
    """RepeatVector, and cropping and padding of sequences: channels are the last axis."""

    def __init__(self, pads: bool = False) -> None:
        self._pads = pads

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels = inputs[0]
        if channels is None or channels.axis != len(call.inputs[0].shape) - 1:
            reason = f"{call.path} works along the axis where the channels lie"
            links.fix(channels, reason)
            return fixed_results(links, call, reason)
        return [Channels(len(call.outputs[0].shape) - 1, channels.ids)]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        values = inputs[0]
        if values is None or at.outputs[0] is None or len(values) != len(at.outputs[0].ids):
            return [unknown(at.outputs[0])]
        return [np.where(values == 0, 0.0, np.nan) if self._pads else values]

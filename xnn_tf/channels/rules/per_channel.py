"""Layers that treat each number, or each channel, by itself: activations, dropout, noise, BatchNorm, PReLU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnn_tf.channels.rules.base import Constants, Keep, LinkedCall, Rule, apply, fixed_results, numbers, owner, unknown
from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links, Role
from xnn_tf.keras_compat import weight_name


class Elementwise(Rule):
    """A function of each number: the result has the channels of the input."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        return [inputs[0]]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        if inputs[0] is None or at.call.arguments:
            return [unknown(at.outputs[0])]
        return [apply(at.call.layer, inputs[0])]


class Regularization(Elementwise):
    """Dropout and noise: nothing when the model is not training."""

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        return [inputs[0]]


class PerChannelWeights(Rule):
    """Weights of one number per channel, along one axis."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels = inputs[0]
        if channels is None or self.axis(call) != channels.axis:
            reason = f"{call.path} normalises along another axis than that of the channels"
            links.fix(channels, reason)
            return fixed_results(links, call, reason)
        for variable in call.layer.weights:
            name = weight_name(variable)
            if tuple(variable.shape) == (len(channels.ids),):
                role = Role.CHANNEL if name in ("gamma", "beta") else Role.STATE
                links.tie(variable, 0, channels.ids, role, owner(call, name))
        return [channels]

    def axis(self, call: Call) -> int | None:
        """The axis of its weights, None where there are several."""
        axes = call.layer.axis if isinstance(call.layer.axis, (list, tuple)) else [call.layer.axis]
        return int(axes[0]) % len(call.inputs[0].shape) if len(axes) == 1 else None


class BatchNormalization(PerChannelWeights):
    """γ (x − mean) / √(variance + ε) + β, by the moving averages."""

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        layer, values = at.call.layer, inputs[0]
        if values is None or at.outputs[0] is None:
            return [unknown(at.outputs[0])]
        scale = 1 / np.sqrt(numbers(layer.moving_variance) + layer.epsilon)
        offset = 0.0 if layer.beta is None else numbers(layer.beta)
        if layer.gamma is not None:
            scale = scale * numbers(layer.gamma)
        known = np.where(scale == 0, 0.0, values)  # whatever comes, γ = 0 makes it β
        return [(known - np.where(scale == 0, 0.0, numbers(layer.moving_mean))) * scale + offset]


class InstanceNormalization(PerChannelWeights):
    """GroupNormalization with a group for each channel (groups=-1): each is normalised by itself."""

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        return {**config, "groups": -1}

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        layer, values = at.call.layer, inputs[0]
        if values is None or at.outputs[0] is None:
            return [unknown(at.outputs[0])]
        offset = np.zeros(len(values)) if layer.beta is None else numbers(layer.beta)
        dead = np.isfinite(values) if layer.gamma is None else np.isfinite(values) | (numbers(layer.gamma) == 0)
        return [np.where(dead, offset, np.nan)]


class PRelu(Rule):
    """alpha has the input's shape without the batch, 1 along shared axes."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        channels, alpha = inputs[0], call.layer.alpha
        if channels is not None and int(alpha.shape[channels.axis - 1]) == len(channels.ids):
            links.tie(alpha, channels.axis - 1, channels.ids, Role.STATE, owner(call, "alpha"))
        return [channels]

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        values, channels = inputs[0], at.outputs[0]
        if values is None or channels is None:
            return [unknown(channels)]
        slopes = np.moveaxis(numbers(at.call.layer.alpha), channels.axis - 1, -1)
        slopes = slopes.reshape(-1, slopes.shape[-1])
        slope = np.broadcast_to(np.where((slopes == slopes[0]).all(axis=0), slopes[0], np.nan), values.shape)
        return [np.where(values >= 0, values, values * slope)]


def rule_for_normalization(layer: Any) -> Rule | None:
    """The rule of a BatchNormalization or GroupNormalization, None where it mixes channels."""
    if type(layer).__name__ == "GroupNormalization":
        channels = int(layer.weights[0].shape[0]) if layer.weights else -1
        return InstanceNormalization() if layer.groups in (-1, channels) else None
    return BatchNormalization()

"""Convolutions of one to three dimensions: plain, grouped, depthwise, separable and transposed."""

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
from xnn_tf.keras_compat import weight_name


def channel_axis(layer: Any, rank: int) -> int:
    """The axis of channels in a tensor of that rank, the batch included."""
    return 1 if getattr(layer, "data_format", "channels_last") == "channels_first" else rank - 1


def sees_all_taps(layer: Any) -> bool:
    """Whether no padding takes part in any result."""
    return str(layer.padding) == "valid"


class _Convolution(Rule):
    """What all of them share: inputs along the channel axis, results along the same, a bias per result."""

    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        layer, axis = call.layer, channel_axis(call.layer, len(call.inputs[0].shape))
        source = expect(links, call, inputs[0], axis, self.sources(layer))
        if source is None:
            return fixed_results(links, call, f"the number of channels that {call.path} reads is unknown")
        results = self.tie_kernels(links, call, source)
        links.tie(layer.bias, 0, results, Role.CHANNEL, owner(call, "bias"))
        if not activates_elementwise(layer):
            links.fix(results, f"the activation of {call.path} mixes channels, or is not known not to")
        return [Channels(axis, results)]

    def sources(self, layer: Any) -> int:
        """How many channels it reads."""
        raise NotImplementedError

    def tie_kernels(self, links: Links, call: Call, source: np.ndarray) -> np.ndarray:
        """Ties the kernels to the input's channels; returns those of the result."""
        raise NotImplementedError

    def before_bias(self, layer: Any, values: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        values, layer = inputs[0], at.call.layer
        if values is None or at.outputs[0] is None or not activates_elementwise(layer):
            return [unknown(at.outputs[0])]
        bias = 0.0 if layer.bias is None else numbers(layer.bias)
        return [activated(layer, self.before_bias(layer, values) + bias)]

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        assert at.outputs[0] is not None
        return {**config, "filters": count_of(at.outputs[0].ids, keep)}


class Convolution(_Convolution):
    """kernel (…, inputs / groups, outputs).

    Of several groups, each loses the same: either channels at the same place of every group, or, where each group has
    one input, whole groups.
    """

    def sources(self, layer: Any) -> int:
        return int(layer.kernel.shape[-2]) * layer.groups

    def tie_kernels(self, links: Links, call: Call, source: np.ndarray) -> np.ndarray:
        layer, groups = call.layer, call.layer.groups
        rank = len(layer.kernel.shape)
        results = links.columns(layer.kernel, rank - 1, owner(call, "kernel"))
        per_group = len(source) // groups
        if groups > 1 and per_group == 1:
            links.unite(np.repeat(source, len(results) // groups), results)
            return results
        rows = source
        if groups > 1:
            rows = links.unite_along(source.reshape(groups, per_group), 0)
            links.unite_along(results.reshape(groups, -1), 0)
        links.tie(layer.kernel, rank - 2, rows, Role.ROW, owner(call, "kernel"), is_kernel=True)
        return results

    @staticmethod
    def _affine(layer: Any) -> Affine:
        kernel, groups = numbers(layer.kernel), layer.groups
        kernel = kernel.reshape(-1, *kernel.shape[-2:])
        taps, inputs, outputs = kernel.shape
        if groups > 1:
            whole = np.zeros((taps, groups, inputs, groups, outputs // groups))
            split = kernel.reshape(taps, inputs, groups, -1)
            for group in range(groups):
                whole[:, group, :, group] = split[:, :, group]
            kernel = whole.reshape(taps, groups * inputs, outputs)
        return Affine(kernel, sees_all_taps(layer))

    def before_bias(self, layer: Any, values: np.ndarray) -> np.ndarray:
        return self._affine(layer).results(values, 0.0)

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        layer = at.call.layer
        if inputs[0] is None or (layer.groups > 1 and layer.kernel.shape[-2] == 1):
            return [None]
        return [self._affine(layer).live(inputs[0])]

    def bias_for(self, at: LinkedCall, inputs: Sequence[Constants], removed: Sequence[np.ndarray]) -> np.ndarray | None:
        return None if inputs[0] is None else self._affine(at.call.layer).added(inputs[0], removed[0])

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        config = super().resized(config, at, keep)
        if at.call.layer.groups > 1 and at.call.layer.kernel.shape[-2] == 1:
            assert at.inputs[0] is not None
            config["groups"] = count_of(at.inputs[0].ids, keep)
        return config


class TransposedConvolution(_Convolution):
    """kernel (…, outputs, inputs). A constant other than zero gives other sums at the ends and between strides."""

    def sources(self, layer: Any) -> int:
        return int(layer.kernel.shape[-1])

    def tie_kernels(self, links: Links, call: Call, source: np.ndarray) -> np.ndarray:
        kernel, rank = call.layer.kernel, len(call.layer.kernel.shape)
        results = links.columns(kernel, rank - 2, owner(call, "kernel"))
        links.tie(kernel, rank - 1, source, Role.ROW, owner(call, "kernel"), is_kernel=True)
        return results

    @staticmethod
    def _affine(layer: Any) -> Affine:
        kernel = numbers(layer.kernel)
        return Affine(kernel.reshape(-1, *kernel.shape[-2:]).swapaxes(1, 2), uniform=False)

    def before_bias(self, layer: Any, values: np.ndarray) -> np.ndarray:
        return self._affine(layer).results(values, 0.0)

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        return [None if inputs[0] is None else self._affine(at.call.layer).live(inputs[0])]


class DepthwiseConvolution(_Convolution):
    """kernel (…, channels, multiplier): an input goes with all its results."""

    @staticmethod
    def _kernel(layer: Any) -> Any:
        return getattr(layer, "depthwise_kernel", None) if hasattr(layer, "depthwise_kernel") else layer.kernel

    def sources(self, layer: Any) -> int:
        return int(self._kernel(layer).shape[-2])

    def tie_kernels(self, links: Links, call: Call, source: np.ndarray) -> np.ndarray:
        kernel = self._kernel(call.layer)
        name = owner(call, weight_name(kernel))
        links.tie(kernel, len(kernel.shape) - 2, source, Role.CHANNEL, name, is_kernel=True)
        return np.repeat(source, int(kernel.shape[-1]))

    def before_bias(self, layer: Any, values: np.ndarray) -> np.ndarray:
        return depthwise_constants(numbers(self._kernel(layer)), values, sees_all_taps(layer))

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        return config


class SeparableConvolution(_Convolution):
    """depthwise_kernel (…, channels, multiplier), then pointwise_kernel (1…, channels · multiplier, outputs)."""

    def sources(self, layer: Any) -> int:
        return int(layer.depthwise_kernel.shape[-2])

    def tie_kernels(self, links: Links, call: Call, source: np.ndarray) -> np.ndarray:
        depthwise, pointwise = call.layer.depthwise_kernel, call.layer.pointwise_kernel
        rank = len(depthwise.shape)
        results = links.columns(pointwise, rank - 1, owner(call, "pointwise_kernel"))
        links.tie(depthwise, rank - 2, source, Role.ROW, owner(call, "depthwise_kernel"), is_kernel=True)
        rows = np.repeat(source, int(depthwise.shape[-1]))
        links.tie(pointwise, rank - 2, rows, Role.ROW, owner(call, "pointwise_kernel"), is_kernel=True)
        return results

    @staticmethod
    def _parts(layer: Any, values: np.ndarray) -> tuple[np.ndarray, Affine]:
        """(what lies between the two, the second)."""
        pointwise = numbers(layer.pointwise_kernel)
        middle = depthwise_constants(numbers(layer.depthwise_kernel), values, sees_all_taps(layer))
        return middle, Affine(pointwise.reshape(1, *pointwise.shape[-2:]), uniform=True)

    def before_bias(self, layer: Any, values: np.ndarray) -> np.ndarray:
        middle, second = self._parts(layer, values)
        return second.results(middle, 0.0)

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        if inputs[0] is None:
            return [None]
        middle, second = self._parts(at.call.layer, inputs[0])
        return [np.asarray(second.live(middle).reshape(len(inputs[0]), -1).any(axis=1))]

    def bias_for(self, at: LinkedCall, inputs: Sequence[Constants], removed: Sequence[np.ndarray]) -> np.ndarray | None:
        if inputs[0] is None:
            return None
        middle, second = self._parts(at.call.layer, inputs[0])
        return second.added(middle, np.repeat(removed[0], len(middle) // len(inputs[0])))


def depthwise_constants(kernel: np.ndarray, values: np.ndarray, uniform: bool) -> np.ndarray:
    """What a depthwise kernel (…, channels, multiplier) makes of constants (channels,)."""
    taps = kernel.reshape(-1, *kernel.shape[-2:])
    reads, sums = (taps != 0).any(axis=0), taps.sum(axis=0)
    usable = (values == 0) | (np.isfinite(values) & uniform)
    out = np.where(usable, values, 0.0)[:, None] * sums
    out[reads & ~usable[:, None]] = np.nan
    return out.ravel()

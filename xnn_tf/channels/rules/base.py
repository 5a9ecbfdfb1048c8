"""What a rule says of a layer: which channels are one, what constants become, and the smaller layer's config."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnn_tf.channels.tracing import Call
from xnn_tf.channels.units import Channels, Links, size_of
from xnn_tf.keras_compat import float32_values

Constants = np.ndarray | None
"""For each channel of a tensor the float64 number that it is everywhere, NaN where it is none. None: unknown."""

Keep = Callable[[np.ndarray], np.ndarray]
"""Which of these channel numbers stay: bool of the same shape."""

ELEMENTWISE_ACTIVATIONS = set(
    """linear relu relu6 sigmoid tanh elu selu swish silu gelu softplus softsign exponential hard_sigmoid hard_swish
    hard_silu mish leaky_relu celu hard_tanh hard_shrink soft_shrink squareplus tanh_shrink log_sigmoid sparse_plus
    sparse_sigmoid""".split()
)


class Rule(ABC):
    """How channels pass one kind of layer."""

    @abstractmethod
    def link(self, links: Links, call: Call, inputs: Sequence[Channels | None]) -> list[Channels | None]:
        """Ties the layer's weights and results to the channels of its inputs; returns the results' channels."""

    def constants(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[Constants]:
        """What results are where inputs are constant, when the model is not training."""
        return [unknown(channels) for channels in at.outputs]

    def live(self, at: LinkedCall, inputs: Sequence[Constants]) -> list[np.ndarray | None]:
        """For each input, which channels the layer reads so that they cannot be replaced by a number added to its
        results; None where the channels only pass through."""
        return [None] * len(inputs)

    def live_results(self, at: LinkedCall, results: Sequence[Constants]) -> np.ndarray | None:
        """Which channels of the first result the layer itself reads again, as recurrent ones do."""
        return None

    def bias_for(self, at: LinkedCall, inputs: Sequence[Constants], removed: Sequence[np.ndarray]) -> np.ndarray | None:
        """What the removed channels, which are not live, add to the layer's results before its activation; None for
        nothing."""
        return None

    def resized(self, config: dict[str, Any], at: LinkedCall, keep: Keep) -> dict[str, Any]:
        """The config of the layer for the channels that stay."""
        return config

    def with_bias(self, config: dict[str, Any]) -> dict[str, Any]:
        """The config of the layer with a bias that it has not."""
        return {**config, "use_bias": True}


class LinkedCall:
    """A call with its rule and the channels of its inputs and results."""

    def __init__(
        self, call: Call, rule: Rule, inputs: Sequence[Channels | None], outputs: Sequence[Channels | None]
    ) -> None:
        self.call, self.rule = call, rule
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)


def unknown(channels: Channels | None) -> Constants:
    """Nothing known of a tensor's channels."""
    return None if channels is None else np.full(len(channels.ids), np.nan)


def count_of(ids: np.ndarray, keep: Keep) -> int:
    """How many of them stay."""
    return int(np.count_nonzero(keep(ids)))


def expect(
    links: Links, call: Call, channels: Channels | None, axis: int, count: int | None = None
) -> np.ndarray | None:
    """The channels of an input, which a layer wants along an axis. Where they lie elsewhere they are fixed.

    Args:
        links: where to say so.
        call: the layer's.
        channels: the input's.
        axis: negative ones count from the end of the first input.
        count: how many channels there are; None takes it from the shape.

    Returns:
        Channel numbers; None where their number is unknown.
    """
    shape = call.inputs[0].shape
    axis %= len(shape)
    count = size_of(shape, axis) if count is None else count
    if channels is not None and channels.axis == axis and len(channels.ids) == count:
        return channels.ids
    reason = f"{call.path} reads axis {axis} of a tensor whose channels are not known to lie there"
    links.fix(channels, reason)
    links.misfit = True
    return None if count is None else links.fixed(count, reason)


def fixed_results(links: Links, call: Call, reason: str) -> list[Channels | None]:
    """Channels along the last axis of each result that cannot be removed."""
    results: list[Channels | None] = []
    for value in call.outputs:
        size = size_of(value.shape, -1) if len(value.shape) > 1 else None
        axis = len(value.shape) - 1
        results.append(None if size is None else Channels(axis, links.fixed(size, reason)))
    return results


def owner(call: Call, weight: str, inner: str = "") -> tuple[str, str]:
    """(path of the layer, name of the weight), as find_kernels calls it."""
    return (f"{call.path}/{inner}" if inner else call.path), weight


def numbers(variable: Any) -> np.ndarray:
    """A weight's values as float64."""
    return float32_values(variable).astype(np.float64)


def activation_name(layer: Any) -> str:
    activation = getattr(layer, "activation", None)
    return "linear" if activation is None else getattr(activation, "__name__", type(activation).__name__)


def activates_elementwise(layer: Any) -> bool:
    """Whether the layer's activation takes each number by itself (softmax does not)."""
    activation = getattr(layer, "activation", None)
    if activation is None:
        return True
    if not callable(activation) or activation_name(layer) not in ELEMENTWISE_ACTIVATIONS:
        return type(activation).__name__ in ("ReLU", "LeakyReLU", "ELU")  # a layer as activation
    return True


def activated(layer: Any, values: np.ndarray) -> np.ndarray:
    """The layer's activation of constants, NaN staying NaN."""
    activation = getattr(layer, "activation", None)
    return values if activation is None else apply(activation, values)


def apply(function: Any, values: np.ndarray) -> np.ndarray:
    """An elementwise function of Keras applied to constants (n,); what is NaN stays so."""
    import tensorflow as tf

    known = np.isfinite(values)
    out = np.full(values.shape, np.nan)
    if known.any():
        out[known] = np.asarray(function(tf.constant(values[known][None], tf.float32)), np.float64)[0]
    return out


class Affine:
    """The sum over inputs of a kernel's taps, on constants.

    Attributes:
        reads: bool (inputs, outputs), where any tap is not zero.
        sums: float64 (inputs, outputs), taps added up.
    """

    def __init__(self, kernel: np.ndarray, uniform: bool) -> None:
        """Args:
        kernel: (taps, inputs, outputs).
        uniform: whether each result sees all taps, so that a constant gives the same everywhere.
        """
        self.reads, self.sums, self.uniform = (kernel != 0).any(axis=0), kernel.sum(axis=0), uniform

    def usable(self, values: np.ndarray) -> np.ndarray:
        """Which inputs give the same everywhere: (inputs,)."""
        return (values == 0) | (np.isfinite(values) & self.uniform)

    def results(self, values: np.ndarray, bias: np.ndarray | float) -> np.ndarray:
        usable = self.usable(values)
        out = np.where(usable, values, 0.0) @ self.sums + bias
        out[(self.reads & ~usable[:, None]).any(axis=0)] = np.nan
        return out

    def live(self, values: np.ndarray) -> np.ndarray:
        return self.reads.any(axis=1) & ~self.usable(values)

    def added(self, values: np.ndarray, removed: np.ndarray) -> np.ndarray:
        """What removed inputs add to each result."""
        return np.where(removed & self.usable(values), np.nan_to_num(values), 0.0) @ self.sums

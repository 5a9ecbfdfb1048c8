"""Which calls of a model become one quantized layer: a linear layer, the BatchNorm and the activation behind it, as the
converter fuses them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.kernels import find_kernels
from xnn_tf.quantization.settings import QuantizationRecipe, Settings
from xnn_tf.quantization.sources import moves_only
from xnn_tf.quantization.strategies import strategy_for
from xnn_tf.quantization.strategies.functions import FUSED, function_name, name_of_layer
from xnn_tf.quantization.strategy import Strategy
from xnn_tf.quantization.trace import Call, Ref, Trace, refs_in

NORMALIZED = frozenset(
    """Dense EinsumDense Conv1D Conv2D Conv3D DepthwiseConv1D DepthwiseConv2D Conv1DTranspose Conv2DTranspose
    Conv3DTranspose SeparableConv1D SeparableConv2D""".split()
)
ACTIVATED = NORMALIZED | frozenset("BatchNormalization Add Subtract Multiply".split())

CLUSTERS = 65
"""Up to so many different values are clusters: some dozens, and zero."""


@dataclass(eq=False)
class Group:
    """call: the layer that is wrapped. batch_norm, activation: calls that its wrapper does as well. strategy: None for
    a layer that stays as it is.
    """

    call: Call
    strategy: Strategy | None = None
    batch_norm: Call | None = None
    activation: Call | None = None

    @property
    def outputs(self) -> list[Ref]:
        return (self.activation or self.batch_norm or self.call).outputs


def plan(trace: Trace, recipe: QuantizationRecipe) -> list[Group]:
    """The groups in the order in which they are called. Raises InputError for a pattern that matches no layer."""
    readers: dict[Ref, list[Call]] = {}
    for call in trace.calls:
        for ref in call.inputs():
            readers.setdefault(ref, []).append(call)
    ends = set(refs_in([trace.outputs]))
    choose = _Choice(trace, recipe)
    times: dict[int, int] = {}
    for call in trace.calls:
        times[id(call.layer)] = times.get(id(call.layer), 0) + 1

    def follower(group: Group) -> Call | None:
        """The only reader of a group's result."""
        (*_, ref) = group.outputs
        users = readers.get(ref, [])
        alone = len(users) == 1 and ref not in ends and len(group.outputs) == 1
        return users[0] if alone and times[id(users[0].layer)] == times[id(group.call.layer)] == 1 else None

    groups, taken = [], set()
    for call in trace.calls:
        if call in taken:
            continue
        group = Group(call, choose(call))
        groups.append(group)
        kind = type(call.layer).__name__
        if group.strategy is None or not group.strategy.fuses:
            continue
        linear = function_name(getattr(call.layer, "activation", None)) == "linear"
        after = follower(group)
        if kind in NORMALIZED and linear and after is not None and _is_batch_norm(after, choose):
            group.batch_norm = after
            taken.add(after)
            after = follower(group)
        if kind in ACTIVATED and linear and after is not None and _is_fused(after, choose):
            group.activation = after
            taken.add(after)
    choose.check()
    return groups


def _is_batch_norm(call: Call, choose: Callable[[Call], Strategy | None]) -> bool:
    layer = call.layer
    if type(layer).__name__ != "BatchNormalization" or choose(call) is None:
        return False
    axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    rank = len(layer.moving_mean.shape)
    return rank == 1 and (list(axes) == [-1] or list(axes) == [_rank(layer) - 1])


def _rank(layer: Any) -> int:
    spec = layer.input_spec
    spec = spec[0] if isinstance(spec, (list, tuple)) else spec
    return spec.ndim or max(spec.axes or {0: 0}) + 1


def _is_fused(call: Call, choose: Callable[[Call], Strategy | None]) -> bool:
    return name_of_layer(call.layer) in FUSED and choose(call) is not None


class _Choice:
    """The strategy of a call, or None: by the recipe's patterns, the layer's class, and what it can be."""

    def __init__(self, trace: Trace, recipe: QuantizationRecipe):
        self._recipe = recipe
        self._exclude = [recipe.exclude] if isinstance(recipe.exclude, str) else list(recipe.exclude)
        self._made: dict[int, Strategy | None] = {}
        self._names = [name for call in trace.calls for name in (call.path, call.layer.name)]

    def __call__(self, call: Call) -> Strategy | None:
        key = id(call.layer)
        if key not in self._made:
            self._made[key] = self._strategy(call)
        return self._made[key]

    def check(self) -> None:
        for argument, patterns in (("exclude", self._exclude), ("per_layer", list(self._recipe.per_layer))):
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in self._names):
                    names = ", ".join(dict.fromkeys(self._names))
                    raise InputError(f"{argument}: no layer is called {pattern!r}; there are {names[:300]}")

    def _strategy(self, call: Call) -> Strategy | None:
        layer = call.layer
        if not hasattr(layer, "weights") or hasattr(layer, "output_source") or moves_only(layer):
            return None
        if any(_names(call, pattern) for pattern in self._exclude):
            return None
        settings = self._settings(call)
        if settings.weight_steps == "largest" and _is_clustered(layer):
            settings = dataclasses.replace(settings, weight_steps="tensor")
        for cls, make in self._recipe.strategies.items():
            if isinstance(layer, cls):
                return make(layer, settings)
        return strategy_for(layer, settings)

    def _settings(self, call: Call) -> Settings:
        for pattern, changes in self._recipe.per_layer.items():
            if _names(call, pattern):
                return self._recipe.settings_with(changes)
        return self._recipe.settings()


def _is_clustered(layer: Any) -> bool:
    """Whether a kernel of the layer has few different values, which one step keeps and several would multiply."""
    for kernel in find_kernels(layer):
        values = kernel.variable.numpy()
        if values.size >= 4 * CLUSTERS and np.unique(values).size <= CLUSTERS:
            return True
    return False


def _names(call: Call, pattern: str) -> bool:
    return fnmatchcase(call.path, pattern) or fnmatchcase(call.layer.name, pattern)

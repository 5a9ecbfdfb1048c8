"""The groups of channels of a model that can be removed, channel by channel, wherever they go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xnn_tf.channels.rules.base import LinkedCall
from xnn_tf.channels.rules.registry import rule_for
from xnn_tf.channels.tracing import Value, trace
from xnn_tf.channels.units import Channels, Links, Role, WeightAxes
from xnn_tf.keras_compat import float32_values


@dataclass(frozen=True, eq=False)
class Member:
    """An axis of a weight that holds channels of a group.

    Attributes:
        weight: the weight.
        axis: its axis.
        role: what its slices do for their neuron.
        positions: (neurons, slices): which slices of the axis are of each neuron of the group.
    """

    weight: WeightAxes
    axis: int
    role: Role
    positions: np.ndarray

    def slices(self, values: np.ndarray) -> np.ndarray:
        """The weights of each neuron: (neurons, numbers)."""
        return np.moveaxis(values, self.axis, 0)[self.positions].reshape(len(self.positions), -1)


@dataclass(frozen=True, eq=False)
class ChannelGroup:
    """Neurons that the same layers compute: filters of a convolution, units of a Dense layer, or of several layers
    whose results are added, so that neuron i of each can only go together.

    Attributes:
        layers: paths of the layers that compute them, joined nowhere else.
        units: their numbers among all neurons of the model.
        members: the axes of weights where they lie.
        fixed: why they cannot be removed; "" where they can.
    """

    layers: tuple[str, ...]
    units: np.ndarray
    members: tuple[Member, ...]
    fixed: str

    @property
    def name(self) -> str:
        """`conv1`, or `conv2 + shortcut`."""
        return " + ".join(self.layers)

    def __len__(self) -> int:
        return len(self.units)

    def kernels(self, *roles: Role) -> list[np.ndarray]:
        """The slices (neurons, numbers) of each kernel axis, by default of every role, as float32."""
        return [
            member.slices(float32_values(member.weight.variable))
            for member in self.members
            if member.weight.is_kernel and (not roles or member.role in roles)
        ]


@dataclass(frozen=True, eq=False)
class ChannelGroups:
    """All groups of a model; prints as a table.

    Attributes:
        groups: in the order of the model's layers, those that are fixed too.
        weights: every weight that holds channels.
        calls: the model's calls with their channels.
        entries: the channels of input layers, by `id(layer)`.
        unit_of: the neuron of each channel number.
        reasons: why neurons are fixed.
    """

    groups: tuple[ChannelGroup, ...]
    weights: tuple[WeightAxes, ...]
    calls: tuple[LinkedCall, ...]
    entries: dict[int, Channels | None]
    unit_of: np.ndarray
    reasons: dict[int, str]

    def __iter__(self) -> Iterator[ChannelGroup]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, layer: str) -> ChannelGroup:
        """The group that a layer, by its path, computes."""
        for group in self.groups:
            if layer in group.layers:
                return group
        raise KeyError(layer)

    @property
    def removable(self) -> tuple[ChannelGroup, ...]:
        return tuple(group for group in self.groups if not group.fixed)

    @cached_property
    def unit_count(self) -> int:
        return int(self.unit_of.max(initial=-1)) + 1

    def __str__(self) -> str:
        width = max([len(group.name) for group in self.groups] or [0])
        return "\n".join(
            f"{group.name.ljust(width)}  {len(group):6d}  {group.fixed or 'removable'}" for group in self.groups
        )

    __repr__ = __str__


def channel_groups(model: Any) -> ChannelGroups:
    """Finds which channels of a model can be removed, and what goes with each.

    Through convolutions of all kinds, Dense, Embedding, recurrent layers, BatchNorm, activations, pooling, Flatten and
    Reshape, Concatenate, and additions. What leaves the model, and what a layer that is not understood reads, is
    fixed, with the reason.

    Args:
        model: functional, Sequential, or subclassed as far as its `call` runs on symbolic tensors; of either Keras.

    Raises:
        InputError: no Keras model, one that is not built, or one that cannot be followed; the message names the layer.
        UnsupportedError: Keras runs on another backend than TensorFlow.
    """
    traced = trace(model)
    links = Links()
    there: dict[Value, Channels | None] = {}
    for value in traced.inputs:
        size = value.shape[-1] if len(value.shape) > 1 else None
        fixed = None if size is None else links.fixed(size, "input of the model")
        there[value] = None if fixed is None else Channels(len(value.shape) - 1, fixed)
    calls = []
    for call in traced.calls:
        rule = rule_for(call.layer)
        inputs = [_in_place(links, there[value], value) for value in call.inputs]
        links.misfit = False
        outputs = rule.link(links, call, inputs)
        there.update(zip(call.outputs, outputs, strict=True))
        calls.append(LinkedCall(call, rule, [None] * len(inputs) if links.misfit else inputs, outputs))
    entries: dict[int, Channels | None] = {}
    for layer, value in traced.entries:
        _join(links, entries, id(layer), there[value])
    for value in traced.outputs:
        links.fix(there[value], "output of the model")
    return _collect(links, tuple(calls), entries)


def _join(links: Links, entries: dict[int, Channels | None], layer: int, channels: Channels | None) -> None:
    """Makes the channels one that the input layer of a model inside is given when that model is called again."""
    known = entries.setdefault(layer, channels)
    if known is None or channels is None or known is channels:
        return
    if known.axis == channels.axis and len(known.ids) == len(channels.ids):
        links.unite(known.ids, channels.ids)
    else:
        for one in (known, channels):
            links.fix(one, "a model inside is called with channels that do not lie alike")


def _in_place(links: Links, channels: Channels | None, value: Value) -> Channels | None:
    """Channels as they are, None where the tensor's axis is found to be of another size."""
    if channels is None:
        return None
    if channels.axis < len(value.shape) and value.shape[channels.axis] in (None, len(channels.ids)):
        return channels
    links.fix(channels, "its axis changes its size in a layer that is not understood")
    return None


def _collect(links: Links, calls: tuple[LinkedCall, ...], entries: dict[int, Channels | None]) -> ChannelGroups:
    roots = links.roots()
    numbers, unit_of = np.unique(roots, return_inverse=True)
    unit_of = unit_of.reshape(-1)
    by_root = links.reasons(roots)
    reasons = {int(np.searchsorted(numbers, root)): reason for root, reason in by_root.items()}
    weights = tuple(links.weights.values())
    # A neuron's place: which axes it lies on, with how many slices, and why it is fixed if it is.
    places: dict[int, list[tuple[int, int, int]]] = {}
    slices: dict[tuple[int, int, int], list[int]] = {}
    for index, weight in enumerate(weights):
        for axis, ids in weight.axes.items():
            found, counts = np.unique(unit_of[ids], return_counts=True)
            for unit, count in zip(found.tolist(), counts.tolist(), strict=True):
                places.setdefault(unit, []).append((index, axis, count))
            for position, unit in enumerate(unit_of[ids].tolist()):
                slices.setdefault((index, axis, unit), []).append(position)
    alike: dict[tuple[Any, ...], list[int]] = {}
    for unit, place in places.items():
        if any(weights[index].roles[axis] is Role.COLUMN for index, axis, _ in place):
            alike.setdefault((tuple(place), reasons.get(unit, "")), []).append(unit)
    groups = []
    for (place, fixed), units in alike.items():
        members = tuple(
            Member(weights[index], axis, weights[index].roles[axis], np.array([slices[index, axis, u] for u in units]))
            for index, axis, _ in place
        )
        makers = [m.weight.layer for m in members if m.role is Role.COLUMN]
        groups.append(ChannelGroup(tuple(dict.fromkeys(makers)), np.array(units), members, fixed))
    order = {id(weight): index for index, weight in enumerate(weights)}
    groups.sort(key=lambda g: (min(order[id(m.weight)] for m in g.members if m.role is Role.COLUMN), int(g.units[0])))
    return ChannelGroups(tuple(groups), weights, calls, entries, unit_of, reasons)

"""Which neurons a model does not need: what they are is a constant, or nobody reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from xnn_tf.channels.groups import ChannelGroups
from xnn_tf.channels.rules.base import Constants
from xnn_tf.channels.tracing import Value


@dataclass(frozen=True, eq=False)
class DeadNeurons:
    """What can go from a model without changing what it computes.

    Attributes:
        keep: bool for each neuron (`ChannelGroups.unit_of`), False where it can go.
        biases: what the removed ones add to the results of a layer that reads them, by `id(layer)`.
    """

    keep: np.ndarray
    biases: dict[int, np.ndarray]


def dead_neurons(groups: ChannelGroups) -> DeadNeurons:
    """Finds the neurons that can be removed: each reader has zeros for them, or they are constants that can be added to
    the reader's bias. One of each axis of each weight stays, so that no layer vanishes.
    """
    applied = Counter(id(at.call.layer) for at in groups.calls)
    values: dict[Value, Constants] = {}
    needed = np.zeros(groups.unit_count, bool)
    needed[list(groups.reasons)] = True
    read: list[list[Constants]] = []
    for at in groups.calls:
        inputs = [
            None if channels is None else _given(values.get(value), len(channels.ids), applied[id(at.call.layer)])
            for value, channels in zip(at.call.inputs, at.inputs, strict=True)
        ]
        read.append(inputs)
        for channels, live in zip(at.inputs, at.rule.live(at, inputs), strict=True):
            if channels is not None and live is not None:
                needed[groups.unit_of[channels.ids[live]]] = True
        results = at.rule.constants(at, inputs)
        values.update(zip(at.call.outputs, results, strict=True))
        again = at.rule.live_results(at, results)
        if again is not None and at.outputs[0] is not None:
            needed[groups.unit_of[at.outputs[0].ids[again]]] = True
    for weight in groups.weights:
        for ids in weight.axes.values():
            units = groups.unit_of[ids]
            if not needed[units].any():
                needed[units[0]] = True
    return DeadNeurons(needed, _biases(groups, read, needed))


def _given(constants: Constants, size: int, applications: int) -> np.ndarray:
    """Constants of an input. A layer that is applied several times has one bias, which serves none but zero."""
    if constants is None or len(constants) != size:
        return np.full(size, np.nan)
    return constants if applications == 1 else np.where(constants == 0, 0.0, np.nan)


def _biases(groups: ChannelGroups, read: list[list[Constants]], keep: np.ndarray) -> dict[int, np.ndarray]:
    biases = {}
    for at, inputs in zip(groups.calls, read, strict=True):
        removed = [
            np.zeros(0, bool) if channels is None else ~keep[groups.unit_of[channels.ids]] for channels in at.inputs
        ]
        if any(gone.any() for gone in removed):
            added = at.rule.bias_for(at, inputs, removed)
            if added is not None and added.any():
                biases[id(at.call.layer)] = added
    return biases

"""The neurons of a model on their way to fewer: which are pruned, and the masks that hold their weights at zero."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xnn_tf.channels import ChannelGroup, ChannelGroups
from xnn_tf.channels.units import Role, WeightAxes
from xnn_tf.kernel_layout import KernelLayout
from xnn_tf.kernels import Kernel
from xnn_tf.neuron_costs import NeuronCosts
from xnn_tf.neuron_scores import Score
from xnn_tf.pruning_pattern import smallest
from xnn_tf.weight_mask import WeightMask

LEAST_KEPT = 0.1
"""Share of a layer's neurons that stay when layers are ranked together, so that none is cut through."""
HOLDER = "NeuronPruneCallback"


class PrunedNeurons:
    """Chooses neurons and holds their weights at zero: kernel columns, biases, BatchNorm's γ and β, and kernel rows.

    Pruned neurons never come back to life.
    """

    def __init__(
        self,
        model: Any,
        groups: ChannelGroups,
        shared: Sequence[ChannelGroup],
        single: Mapping[ChannelGroup, float | None],
        *,
        target: float | None,
        initial: float,
        together: bool,
        of: str,
        score: Score,
    ) -> None:
        """Attaches masks that keep everything.

        Args:
            model: whose they are.
            groups: all of the model's.
            shared: those that have the target together.
            single: those that have their own share of neurons; None keeps what is pruned.
            target: share of the cost that goes from `shared`; None keeps what is pruned.
            initial: the share at the begin.
            together: whether neurons of all layers are ranked as one.
            of: the cost, see `xnn_tf.neuron_costs`.
            score: of neurons.

        Raises:
            InputError: another NeuronPruneCallback prunes one of them, or the cost cannot be counted.
        """
        self._groups, self._shared, self._single = groups, list(shared), dict(single)
        self._target, self._initial, self._together, self._score = target, initial, together, score
        self.units = np.concatenate([group.units for group in (*shared, *single)])
        self._counts_neurons = of == "neurons"
        self._costs = NeuronCosts(groups, np.concatenate([g.units for g in shared]) if shared else self.units, of)
        self._pruned = np.zeros(groups.unit_count, bool)
        self._position = 0.0
        chosen = np.zeros(groups.unit_count, bool)
        chosen[self.units] = True
        self._weights: list[WeightAxes] = []
        self.masks: list[WeightMask] = []
        for weight in groups.weights:
            if any(chosen[groups.unit_of[ids]].any() and _is_held(weight, axis) for axis, ids in weight.axes.items()):
                kernel = Kernel(
                    weight.layer, weight.name, weight.variable, KernelLayout(weight.shape, (), ()), False, True
                )
                try:
                    self.masks.append(WeightMask(kernel, model, HOLDER))
                except Exception:
                    self.detach()
                    raise
                self._weights.append(weight)

    @property
    def done(self) -> bool:
        """Whether the schedule has led to its end."""
        return self._position >= 1 or (self._target is None and not any(self._single.values()))

    @property
    def share(self) -> float:
        """Share of the chosen neurons that are pruned."""
        return float(self._pruned[self.units].mean())

    def begin(self) -> None:
        """Takes neurons for pruned whose columns, or whose rows, are zeros, if they are no more than the target."""
        for group in self._shared:
            self._pruned[group.units] = _dead(group)
        if self._target is not None and self._costs.removed(self._pruned) > self._target + 1e-9:
            self._pruned[np.concatenate([g.units for g in self._shared])] = False
        for group, target in self._single.items():
            dead = _dead(group)
            if target is None or dead.sum() <= round(target * len(group)):
                self._pruned[group.units] = dead
        self._mask()

    def move(self, position: float) -> bool:
        """Prunes as much as a position of the schedule asks for, in [0, 1]. Returns whether masks changed."""
        self._position = position
        before = self._pruned.copy()
        for group, target in self._single.items():
            if target is not None:
                self._prune(group, self._at(position, target))
        if self._target is not None and self._shared:
            self._prune_shared(self._at(position, self._target))
        if (before == self._pruned).all():
            return False
        self._mask()
        return True

    def detach(self) -> None:
        """Takes the masks off, and leaves the zeros."""
        for mask in self.masks:
            mask.detach()

    def _at(self, position: float, target: float) -> float:
        initial = min(self._initial, target)
        return target if position >= 1 else initial + (target - initial) * position

    def _prune(self, group: ChannelGroup, share: float) -> None:
        self._pruned[group.units] = _least(self._scored(group), min(len(group) - 1, round(share * len(group))))

    def _scored(self, group: ChannelGroup) -> np.ndarray:
        """Scores, least for what is pruned."""
        return np.where(self._pruned[group.units], -np.inf, self._score(group))

    def _prune_shared(self, share: float) -> None:
        """The fewest neurons, by score, with which that share of the cost goes."""
        scores = [self._scored(group) for group in self._shared]
        total = sum(map(len, scores))
        if self._counts_neurons:
            share = round(share * total) / total

        def marked(count: int) -> np.ndarray:
            pruned = self._pruned.copy()
            for group, dead in zip(self._shared, self._choose(scores, count / total, count), strict=True):
                pruned[group.units] |= dead
            return pruned

        low, high = 0, total
        if self._costs.removed(marked(low)) >= share - 1e-9:
            return
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._costs.removed(marked(middle)) >= share - 1e-9 else (middle, high)
        self._pruned = marked(high)

    def _choose(self, scores: list[np.ndarray], share: float, count: int) -> list[np.ndarray]:
        if not self._together:
            return [_least(values, min(len(values) - 1, round(share * len(values)))) for values in scores]
        free = []
        for values in scores:
            kept = max(1, round(LEAST_KEPT * len(values)))
            best = ~_least(values, len(values) - kept)
            free.append(np.where(best & np.isfinite(values), np.inf, values))
        joined = np.concatenate(free)
        dead = _least(joined, min(count, int(np.count_nonzero(joined < np.inf))))
        return np.split(dead, np.cumsum([len(values) for values in scores])[:-1])

    def _mask(self) -> None:
        for weight, mask in zip(self._weights, self.masks, strict=True):
            zeros = np.zeros(weight.shape, bool)
            for axis, ids in weight.axes.items():
                if _is_held(weight, axis):
                    shape = [1] * len(weight.shape)
                    shape[axis] = -1
                    zeros |= self._pruned[self._groups.unit_of[ids]].reshape(shape)
            mask.set_zeros(zeros)


def _is_held(weight: WeightAxes, axis: int) -> bool:
    return weight.roles[axis] is not Role.STATE


def _least(scores: np.ndarray, count: int) -> np.ndarray:
    return smallest(scores, max(0, count))


def _dead(group: ChannelGroup) -> np.ndarray:
    """Neurons that nothing computes or nothing reads. A layer of nothing else was initialised so."""
    dead = np.zeros(len(group), bool)
    for role in (Role.COLUMN, Role.ROW):
        parts = group.kernels(role)
        if parts:
            dead |= ~np.any([part.any(axis=1) for part in parts], axis=0)
    return dead & ~dead.all()

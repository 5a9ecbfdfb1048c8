"""Neuron pruning inside `model.fit`: whole filters and units."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from schema.errors import InputError
from xnn_tf import train_function
from xnn_tf.channels import ChannelGroup, ChannelGroups, channel_groups
from xnn_tf.channels.units import Role
from xnn_tf.gradient_tap import GradientTap
from xnn_tf.kernel_callback import HeldKernel, KernelCallback
from xnn_tf.kernels import Kernel, find_kernels
from xnn_tf.layer_patterns import Patterns, matches
from xnn_tf.neuron_costs import COSTS
from xnn_tf.neuron_scores import Score, bn_gamma, checked, has_gamma, l2, taylor
from xnn_tf.pruned_neurons import PrunedNeurons
from xnn_tf.pruning_schedule import Point, TfmotSchedule, pruning_schedule
from xnn_tf.pruning_targets import layer_targets, target_share
from xnn_tf.weight_mask import MaskHolder

Criterion = str | Callable[[ChannelGroup], Any]
_CRITERIA = ("l2", "bn_gamma", "taylor")
_DEFAULT_TARGET = 0.5


class NeuronPruneCallback(KernelCallback):
    """Prunes whole neurons (units, filters) while the model trains, step by step, and holds them at zero.

        model.fit(x, y, epochs=10, callbacks=[xnn_tf.NeuronPruneCallback(target=0.5)])
        small = xnn_tf.shrink(model)

    What computes a neuron (kernel columns, bias, BatchNorm's γ and β, depthwise kernels) and what reads it (rows of
    the next kernels) is zero together, through BatchNorm, depthwise layers, pooling, Flatten, Concatenate and
    residual additions; neurons whose results are added go together. The model keeps its shapes until
    `xnn_tf.shrink` makes the smaller one. Layers whose neurons cannot go (the model's outputs, what feeds layers that
    mix channels) stay as they are; `xnn_tf.channel_groups(model)` says why.

    It is used as `PruneCallback` is: with `fit` or with `start`, `step` and `finish`, on models of either Keras, and
    together with it in one `fit`: the zeros of pruned neurons count for the sparsity of a kernel there. The share of
    pruned neurons is in the logs as `pruned_neurons`. Neurons that do nothing at the start count as pruned, as long as
    they are no more than the target, so training that goes on keeps them; a `fit` without a callback brings them back
    to life, so shrink first. `NeuronPruneCallback(target=None)` keeps those that there are.
    """

    LOG_NAME = "pruned_neurons"
    DOES = "pruned by neurons"

    def __init__(
        self,
        target: float | None = _DEFAULT_TARGET,
        *,
        of: str = "neurons",
        criterion: Criterion = "l2",
        ranking: str = "global",
        initial: float = 0.0,
        schedule: Any = "cubic",
        begin: Point = 0.0,
        end: Point = 0.75,
        frequency: int | None = None,
        include: Patterns | None = None,
        exclude: Patterns | None = None,
        per_layer: Mapping[str, float | None] | None = None,
    ) -> None:
        """Sets what to prune, how far and when.

        Args:
            target: share, in [0, 1), that is pruned at the end; None keeps what is pruned already.
            of: the share of what: "neurons" of the layers chosen; "weights" or "macs" (multiplications for one input)
                of the whole model, in as few neurons as the criterion allows.
            criterion: which neurons go first. "l2": those of the smallest √Σw² over columns and rows, relative to
                their layer; "bn_gamma": of the smallest BatchNorm factor; "taylor": those without which the loss
                changes least, by the gradients of recent batches; or a function of a `ChannelGroup` that gives a number
                for each of its neurons. Sources of the formulas: `xnn_tf.neuron_scores`.
            ranking: "global" ranks the neurons of all layers together, so that layers lose unequally, but never more
                than nine tenths; "layer" takes the same share of each layer.
            initial: share that is pruned from `begin` on.
            schedule: as of PruneCallback, and so `begin`, `end` and `frequency`.
            begin: when pruning begins: a step (whole number), or a share of the training (fraction).
            end: when the target is reached, likewise.
            frequency: steps between changes; None chooses 100, or less for a short ramp.
            include: layer-name patterns of what to prune; see `xnn_tf.layer_patterns`. Naming one layer of several
                whose neurons are tied names all. None means trainable Conv and Dense layers.
            exclude: layer-name patterns of what not to prune; neurons tied to these stay too.
            per_layer: shares of neurons for single layers, by layer-name pattern; the others have `target`.

        Raises:
            InputError: an argument is of no use; the message names it.
        """
        share = None if target is None else target_share(target, "target")
        first = target_share(initial, "initial")
        targets = layer_targets(per_layer or {})
        if share is None and not any(targets.values()):  # nothing to wait for
            schedule, begin = "constant", 0
        ramp = pruning_schedule(schedule, begin, end, frequency, _DEFAULT_TARGET if share is None else share)
        if isinstance(ramp, TfmotSchedule):
            first, share = ramp.initial_sparsity, ramp.target_sparsity
        if share is not None and first > share:
            raise InputError(f"initial={first} is above target={share}")
        if of not in COSTS:
            raise InputError(f"of={of!r}: give one of {', '.join(COSTS)}")
        if ranking not in ("global", "layer"):
            raise InputError(f'ranking={ranking!r}: give "global" or "layer"')
        if criterion not in _CRITERIA and not callable(criterion):
            raise InputError(f"criterion={criterion!r}: give one of {', '.join(_CRITERIA)}, or a function")
        self._tap: GradientTap | None = None
        super().__init__(ramp, include, exclude, targets)
        self._target, self._initial, self._of = share, first, of
        self._criterion, self._together = criterion, ranking == "global"

    @property
    def pruned(self) -> float:
        """Share of the chosen neurons that are pruned."""
        return self._held[0].share if self._held else 0.0

    def _reset(self) -> None:
        super()._reset()
        self._hold_masks = MaskHolder([])
        if self._tap is not None:
            self._tap.close()
        self._tap = None

    def _begin(self, manual: bool) -> None:
        super()._begin(manual)
        last, total = self._schedule.last_step(self._clock), self._clock.total
        if last is not None and total is not None and last > total and self._target is not None:
            self._warned = True
            warnings.warn(
                f"the pruning schedule ends at step {last}, the training at step {total}: the target will not be "
                "reached",
                stacklevel=2,
            )

    def _attach_to(self, kernel: Kernel) -> None:
        """Neurons lie on several kernels, see `_attach`."""

    def _attach(self) -> list[HeldKernel]:
        if self._held:
            return []
        try:
            groups = channel_groups(self.model)
        except InputError:
            if self._complete:
                raise
            return []  # built by the first step
        shared, single = self._choose_groups(groups)
        score = self._score(groups)
        self._held = [
            PrunedNeurons(
                self.model,
                groups,
                shared,
                single,
                target=self._target,
                initial=self._initial,
                together=self._together,
                of=self._of,
                score=score,
            )
        ]
        self._hold_masks = MaskHolder(self._held[0].masks)
        return list(self._held)

    def _score(self, groups: ChannelGroups) -> Score:
        if self._criterion == "taylor":
            self._tap = GradientTap(self.model, groups)
            return taylor(self._tap)
        if callable(self._criterion):
            return checked(self._criterion)
        return l2 if self._criterion == "l2" else bn_gamma

    def _choose_groups(self, groups: ChannelGroups) -> tuple[list[ChannelGroup], dict[ChannelGroup, float | None]]:
        """The groups that have the target together, and those that have their own."""
        kernels = self._chosen()
        by_variable = {id(kernel.variable): kernel for kernel in find_kernels(self.model)}
        chosen = {id(kernel.variable) for kernel in kernels}
        shared: list[ChannelGroup] = []
        single: dict[ChannelGroup, float | None] = {}
        kept: dict[str, str] = {}
        for group in groups:
            makers = [
                by_variable[id(member.weight.variable)]
                for member in group.members
                if member.role is Role.COLUMN and id(member.weight.variable) in by_variable
            ]
            inside = [id(maker.variable) in chosen for maker in makers]
            asked = self._include is not None or any(matches(m, p) for m in makers for p in self._per_layer)
            if any(matches(m, pattern) for m in makers for pattern in self._exclude):
                continue
            if not inside or not (any(inside) if asked else all(inside)):
                continue
            if group.fixed:
                kept[group.name] = group.fixed
                continue
            own = [target for p, target in self._per_layer.items() if any(matches(m, p) for m in makers)]
            if own:
                if own[0] != 0:
                    single[group] = own[0]
            elif self._target != 0 and (self._criterion != "bn_gamma" or has_gamma(group)):
                shared.append(group)
        self._explain(kept, bool(shared or single))
        return shared, single

    def _explain(self, kept: dict[str, str], found: bool) -> None:
        """Says what cannot be pruned: an error where nothing can, a warning where it is not the model's own output."""
        if not found:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in kept.items())
            what = "no BatchNorm behind the layers chosen" if self._criterion == "bn_gamma" and not reasons else reasons
            raise InputError(f"{self.model.name} has no neurons that can be pruned: {what or 'no layer is chosen'}")
        unexpected = {name: reason for name, reason in kept.items() if reason != "output of the model"}
        if unexpected:
            listed = "; ".join(f"{name}: {reason}" for name, reason in list(unexpected.items())[:3])
            warnings.warn(
                f"{len(unexpected)} layers keep all their neurons ({listed}{'; …' * (len(unexpected) > 3)}): "
                "exclude= silences this",
                stacklevel=2,
            )

    def _move(self) -> bool:
        if self._tap is not None and not self._tap.ready:
            return False  # no gradients yet
        return super()._move()

    def _hold(self) -> None:
        if self._held:
            self._hold_masks(getattr(self.model, "optimizer", None))

    def _measure(self) -> float:
        others = [other for other in train_function.observers(self.model) if isinstance(other, NeuronPruneCallback)]
        held = [held for callback in others or [self] for held in callback._held]
        return sum(h.share * len(h.units) for h in held) / max(1, sum(len(h.units) for h in held))

    def _unfinished(self) -> str:
        return (
            f"training ended at step {self._clock.step}, before the pruning schedule did: {100 * self.pruned:.1f} % of "
            "the neurons are pruned; fit(initial_epoch=…) goes on from here"
        )

"""Synapse pruning inside `model.fit`."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from schema.errors import InputError
from xnn_tf import train_function
from xnn_tf.batch_peek import BatchPeek
from xnn_tf.kernel_callback import HeldKernel, KernelCallback
from xnn_tf.kernels import Kernel
from xnn_tf.layer_patterns import Patterns, first_match, matches
from xnn_tf.pruned_kernel import PrunedKernel
from xnn_tf.pruning_pattern import pruning_pattern
from xnn_tf.pruning_schedule import Point, TfmotSchedule, pruning_schedule
from xnn_tf.pruning_targets import layer_targets, target_share
from xnn_tf.sensitivity import SAMPLES, Batch, Sensitivity, batches_of, measure
from xnn_tf.weight_mask import MaskHolder, WeightMask

_DEFAULT_TARGET = 0.5
_MOST = 0.999  # zeros of a kernel that may be there before its target is measured


class PruneCallback(KernelCallback):
    """Sets the weights of least magnitude to zero while the model trains, more and more of them, and holds them there.

        model.fit(x, y, epochs=10, callbacks=[xnn_tf.PruneCallback(target_sparsity=0.8)])

    The model is not wrapped, and saves, reloads and exports as before; the zeros in its kernels are all that remains.
    It may be of Keras 3 (on TensorFlow) or of tf_keras, nested, subclassed, of mixed precision, distributed.

    When `end` is reached, each kernel has exactly `round(target · n)` zeros, where n counts its weights (for blocks:
    zero blocks and blocks; for "2:4" see there); ties in magnitude are decided by position. With a NeuronPruneCallback
    in the same training n counts the weights between neurons that stay: the target is that of what `shrink` leaves (a
    few zeros more where neurons still go after `end`). The sparsity of the pruned kernels as they are is in the logs as
    `sparsity`, for every other callback, wherever it stands in the list (under a `tf.distribute` strategy with several
    replicas: for those after this one, and History).

    Zeros that a kernel has at the start count as pruned, as long as they are no more than its target: training that
    goes on (`initial_epoch`, `BackupAndRestore`, or simply another `fit` with this callback) keeps them.
    `PruneCallback(target_sparsity=None)` keeps the zeros that there are and adds none, for fine-tuning; a `fit`
    without a callback fills them.

    Training that stops before `end` (EarlyStopping, an `end` beyond the last step) leaves the sparsity reached so far,
    and warns. `EarlyStopping(restore_best_weights=True)` and `ModelCheckpoint(save_best_only=True)` may choose an epoch
    before the target was reached: give the former `start_from_epoch`.

    In a custom training loop:

        prune = xnn_tf.PruneCallback(target_sparsity=0.8)
        prune.start(model, total_steps=epochs * steps_per_epoch)
        for x, y in batches:
            train_step(x, y)  # an optimizer's update, or any other, compiled or not
            prune.step()
        prune.finish()
    """

    LOG_NAME = "sparsity"
    DOES = "pruned"

    def __init__(
        self,
        target_sparsity: float | None = _DEFAULT_TARGET,
        *,
        initial_sparsity: float = 0.0,
        schedule: Any = "cubic",
        begin: Point = 0.0,
        end: Point = 0.75,
        frequency: int | None = None,
        include: Patterns | None = None,
        exclude: Patterns | None = None,
        per_layer: Mapping[str, float | None] | None = None,
        pattern: str | Sequence[int] = "element",
        sensitivity: Sensitivity | str | None = None,
        sensitivity_data: Any = None,
    ) -> None:
        """Sets what to prune, how far and when.

        Args:
            target_sparsity: share of zeros at the end, in [0, 1), of each kernel; None keeps the present zeros.
            initial_sparsity: share of zeros from `begin` on.
            schedule: "cubic" (rises steeply, then levels off), "constant" (the target from `begin` on), or a schedule
                of `tensorflow_model_optimization.sparsity.keras` such as PolynomialDecay, which then says the
                sparsities, begin, end and frequency.
            begin: when pruning begins: a whole number is a step (batch, counted from epoch 0), a fraction from 0.0 to
                1.0 the share of the planned training (`epochs`). While a data set of unknown length runs through its
                first epoch, shares count whole epochs.
            end: when the target is reached, likewise. The training after it recovers accuracy.
            frequency: steps between changes of the masks; None chooses 100, or less for a short ramp.
            include: layer-name patterns of what to prune; see `xnn_tf.layer_patterns`. None means every trainable Conv
                and Dense kernel, the first included. Depthwise, recurrent, embedding and frozen kernels are pruned
                only when a pattern asks for them.
            exclude: layer-name patterns of what not to prune.
            per_layer: targets for single layers, by layer-name pattern; the first that matches counts. 0.0 leaves a
                kernel alone, None keeps its zeros. A pattern for a layer that is not pruned otherwise asks for it.
            pattern: "element"; a block (outputs, inputs) such as (4, 4) or (1, 4), laid over the matrix of outputs and
                inputs at each spatial tap, cut short at the ends, zero as a whole, and counted in blocks; or "2:4": two
                zeros in each four consecutive inputs of an output, at target 0.5.
            sensitivity: "auto" shares `target_sparsity` out among the layers, so that those which mind little are
                pruned most: what it costs to prune each is measured when pruning begins, on a trained model. Or what
                `xnn_tf.sensitivity` has measured. Layers that `per_layer` names keep their own targets.
            sensitivity_data: (x, y), or batches, to measure on (validation data); None takes the first batches of the
                training, which they are not lost to. Needed in custom training loops and under `tf.distribute`.

        Raises:
            InputError: an argument is of no use; the message names it.
        """
        target = None if target_sparsity is None else target_share(target_sparsity, "target_sparsity")
        initial = target_share(initial_sparsity, "initial_sparsity")
        targets = layer_targets(per_layer or {})
        if target is None and not any(targets.values()):  # nothing to wait for
            schedule, begin = "constant", 0
        ramp = pruning_schedule(schedule, begin, end, frequency, _DEFAULT_TARGET if target is None else target)
        super().__init__(ramp, include, exclude, targets)
        self._pattern = pruning_pattern(pattern)
        if isinstance(ramp, TfmotSchedule):
            initial = ramp.initial_sparsity
            if target not in (_DEFAULT_TARGET, ramp.target_sparsity):
                raise InputError(
                    f"target_sparsity={target} contradicts the schedule, which ends at {ramp.target_sparsity}"
                )
            target = ramp.target_sparsity
        if target is not None and initial > target:
            raise InputError(f"initial_sparsity={initial} is above target_sparsity={target}")
        self._target, self._initial = target, initial
        self._check_sensitivity(sensitivity, sensitivity_data, pattern)
        self._sensitivity, self._data = sensitivity, sensitivity_data
        shares = {"target_sparsity": target} | {f"per_layer[{k!r}]": v for k, v in targets.items()}
        for argument, share in shares.items():
            if share:
                self._pattern.check_target(share, argument)

    @property
    def sparsity(self) -> float:
        """Share of zeros in the kernels that are being pruned on this model, by all PruneCallbacks of this `fit`."""
        callbacks = [other for other in train_function.observers(self.model) if isinstance(other, PruneCallback)]
        masks = [held.mask for callback in callbacks or [self] for held in callback._held]
        return sum(mask.zeros for mask in masks) / max(1, sum(mask.size for mask in masks))

    def before_execution(self, iterator: Any) -> Any:
        """Measures the sensitivities before the first batch that is trained with masks, which is trained on too."""
        if self._allotted is None and self._schedule.position(self._clock) is not None:
            self._peeks.append(BatchPeek(self._steps_per_execution))
            self._allot(list(batches_of(self._peeks[-1].take(iterator, SAMPLES))))
            self._move()
        return self._peeks[-1].replay(iterator) if self._peeks else iterator

    @staticmethod
    def _check_sensitivity(sensitivity: Any, data: Any, pattern: Any) -> None:
        if not (sensitivity is None or sensitivity == "auto" or isinstance(sensitivity, Sensitivity)):
            raise InputError(f'sensitivity={sensitivity!r}: give "auto", or what xnn_tf.sensitivity() has measured')
        if sensitivity is not None and pattern == "2:4":
            raise InputError('sensitivity is of no use for pattern="2:4", where the target is 0.5 everywhere')
        if data is not None and sensitivity != "auto":
            raise InputError('sensitivity_data is for sensitivity="auto"')

    def _reset(self) -> None:
        super()._reset()
        self._hold_masks = MaskHolder([])
        self._gone = 0
        self._peeks: list[BatchPeek] = []
        self._allotted: dict[str, float] | None = {}
        """Targets by kernel name; None until they are measured."""

    def _begin(self, manual: bool) -> None:
        super()._begin(manual)
        if self._allotted is None and self._data is None and not self._observes:
            self.release()
            raise InputError('sensitivity="auto" needs sensitivity_data=(x, y) in a custom training loop')
        last, total = self._schedule.last_step(self._clock), self._clock.total
        if last is not None and total is not None and last > total and self._target is not None:
            self._warned = True
            warnings.warn(
                f"the pruning schedule ends at step {last}, the training at step {total}: the target sparsity will not "
                "be reached",
                stacklevel=2,
            )

    def _attach(self) -> list[HeldKernel]:
        if isinstance(self._sensitivity, Sensitivity):
            self._allotted = self._sensitivity.targets(self._target or 0.0)
        elif self._sensitivity is not None and self._target is not None:
            self._allotted = None
        return super()._attach()

    def _is_allotted(self, kernel: Kernel) -> bool:
        return self._sensitivity is not None and not any(matches(kernel, pattern) for pattern in self._per_layer)

    def _allot(self, batches: list[Batch]) -> None:
        """Measures the kernels that have no target of their own, and gives them theirs."""
        held = [each for each in self._held if self._is_allotted(each.kernel)]
        self._allotted = {}
        if held:
            found = measure(self.model, [each.kernel for each in held], batches, pattern=self._pattern)
            self._allotted = found.targets(self._target or 0.0)
        for each in held:
            each.target = self._allotted[each.kernel.name]

    def _move(self) -> bool:
        gone = sum(held.neurons.zeros for held in self._held if held.neurons is not None)
        if gone != self._gone:  # fewer weights are left, of which the target is a share
            self._gone, self._position = gone, None
        if self._allotted is None:
            if self._data is None or self._schedule.position(self._clock) is None:
                return False
            pair = isinstance(self._data, tuple) and len(self._data) == 2
            self._allot(list(batches_of(*self._data) if pair else batches_of(self._data)))
        return super()._move()

    def _attach_to(self, kernel: Kernel) -> PrunedKernel | None:
        target = first_match(kernel, self._per_layer, self._target)
        if self._is_allotted(kernel):
            target = _MOST if self._allotted is None else self._allotted.get(kernel.name, target)
        if target == 0:
            return None
        if target is not None:
            self._pattern.check_kernel(kernel.name, kernel.layout)
        return PrunedKernel(WeightMask(kernel, self.model), self._pattern, self._initial, target)

    def _attached(self) -> None:
        self._hold_masks = MaskHolder([held.mask for held in self._held])

    def _hold(self) -> None:
        if self._held:
            self._hold_masks(getattr(self.model, "optimizer", None))

    def _measure(self) -> float:
        return self.sparsity

    def _unfinished(self) -> str:
        return (
            f"training ended at step {self._clock.step}, before the pruning schedule did: the sparsity is "
            f"{self.sparsity:.4f}; fit(initial_epoch=…) goes on from here"
        )

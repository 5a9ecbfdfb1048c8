"""Synapse pruning inside `model.fit`."""

import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from schema.errors import InputError, XnnError
from xnn_tf import train_function
from xnn_tf.callback import Callback, Logs
from xnn_tf.keras_compat import is_built, replicas, require_tensorflow_keras, steps_per_execution, updates_done
from xnn_tf.kernels import Kernel, find_kernels
from xnn_tf.layer_patterns import Patterns, as_patterns, first_match, matches, select
from xnn_tf.pruned_kernel import PrunedKernel
from xnn_tf.pruning_pattern import pruning_pattern
from xnn_tf.pruning_schedule import Point, TfmotSchedule, pruning_schedule
from xnn_tf.training_clock import TrainingClock
from xnn_tf.weight_mask import MaskHolder, WeightMask

LOG_NAME = "sparsity"
_DEFAULT_TARGET = 0.5


class PruneCallback(Callback):
    """Sets the weights of least magnitude to zero while the model trains, more and more of them, and holds them there.

        model.fit(x, y, epochs=10, callbacks=[xnn_tf.PruneCallback(target_sparsity=0.8)])

    The model is not wrapped, and saves, reloads and exports as before; the zeros in its kernels are all that remains.
    It may be of Keras 3 (on TensorFlow) or of tf_keras, nested, subclassed, of mixed precision, distributed.

    When `end` is reached, each kernel has exactly `round(target · n)` zeros, where n counts its weights (for blocks:
    zero blocks and blocks; for "2:4" see there); ties in magnitude are decided by position. The sparsity of the pruned
    kernels is in the logs as `sparsity`, for every other callback, wherever it stands in the list (under a
    `tf.distribute` strategy with several replicas: for those after this one, and History).

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

        Raises:
            InputError: an argument is of no use; the message names it.
        """
        super().__init__()
        self._pattern = pruning_pattern(pattern)
        target = None if target_sparsity is None else _share(target_sparsity, "target_sparsity")
        initial = _share(initial_sparsity, "initial_sparsity")
        self._per_layer = _targets(per_layer or {})
        if target is None and not any(self._per_layer.values()):  # nothing to wait for
            schedule, begin = "constant", 0
        self._schedule = pruning_schedule(
            schedule, begin, end, frequency, _DEFAULT_TARGET if target is None else target
        )
        if isinstance(self._schedule, TfmotSchedule):
            initial = self._schedule.initial_sparsity
            if target not in (_DEFAULT_TARGET, self._schedule.target_sparsity):
                raise InputError(
                    f"target_sparsity={target} contradicts the schedule, which ends at {self._schedule.target_sparsity}"
                )
            target = self._schedule.target_sparsity
        if target is not None and initial > target:
            raise InputError(f"initial_sparsity={initial} is above target_sparsity={target}")
        self._target, self._initial = target, initial
        self._include = None if include is None else as_patterns(include, "include")
        self._exclude = as_patterns(exclude, "exclude")
        shares = {"target_sparsity": target} | {f"per_layer[{k!r}]": v for k, v in self._per_layer.items()}
        for argument, share in shares.items():
            if share:
                self._pattern.check_target(share, argument)
        self._clock = TrainingClock(None, None)
        self._kernels: list[PrunedKernel] = []
        self._model_set_at = 0
        self.attached_at = 0
        self._reset()

    def _reset(self) -> None:
        self._kernels = []
        self._hold_masks = MaskHolder([])
        self._position: float | None = None
        self._started = False  # an epoch has begun, and present zeros are known
        self._complete = True  # all layers are built
        self._ran = False  # a batch has been begun
        self._observes = False  # the train function reports each execution
        self._steps_per_execution = 1
        self._single_replica = True
        self._manual = False  # between start() and finish()
        self._warned = False

    # What a custom training loop calls.

    def start(self, model: Any, total_steps: int | None = None, initial_step: int = 0) -> None:
        """Begins pruning in a custom training loop.

        Args:
            model: the model, built or not.
            total_steps: calls of `step` planned; needed where `begin` or `end` is a share of the training.
            initial_step: steps done by an earlier run that this one goes on with.

        Raises:
            InputError: `total_steps` is needed, or a layer pattern matches nothing.
            UnsupportedError: Keras runs on another backend than TensorFlow.
        """
        self.set_model(model)
        self.set_params({"epochs": None if total_steps is None else 1, "steps": total_steps})
        self._begin(manual=True)
        self._clock.begin_batch(initial_step)
        self._start_masks()

    def step(self) -> float:
        """Counts one update of the weights, moves the masks on when it is time, and sets masked weights to zero.

        Call it after each update, outside of `tf.function`.

        Returns:
            The sparsity of the pruned kernels.
        """
        import tensorflow as tf

        if not self._manual:
            raise InputError("PruneCallback.step() before start(model): call start first")
        if tf.inside_function():
            raise InputError("PruneCallback.step() counts in Python: call it outside of tf.function")
        self._clock.advance(1)
        if not self._catch_up():
            self._hold()
        return self.sparsity

    def finish(self) -> None:
        """Ends pruning: the zeros stay in the weights, and nothing else stays in the model."""
        self.on_train_end()

    @property
    def sparsity(self) -> float:
        """Share of zeros in the kernels that are being pruned on this model, by all PruneCallbacks of this `fit`."""
        callbacks = [other for other in train_function.observers(self.model) if isinstance(other, PruneCallback)]
        masks = [kernel.mask for callback in callbacks or [self] for kernel in callback._kernels]
        return sum(mask.zeros for mask in masks) / max(1, sum(mask.size for mask in masks))

    # What Keras calls.

    def set_model(self, model: Any) -> None:
        require_tensorflow_keras(model)
        if model is not self.model and self._kernels:  # training of the former model was interrupted
            self.release()
        self._model_set_at = train_function.moment()
        super().set_model(model)

    def on_train_begin(self, logs: Logs = None) -> None:
        self._begin(manual=False)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._clock.begin_epoch(epoch, updates_done(self.model))
        self._start_masks()  # only now: BackupAndRestore brings weights back in on_train_begin
        self._hold()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._clock.begin_batch(batch)
        # In a custom loop with a CallbackList, what the last batch did is first seen here.
        if not self._observes and not self._catch_up(executed=self._ran):
            self._hold()
        self._ran = True

    def after_execution(self, logs: Any) -> Any:
        """Moves masks on after each call of the train function, and adds the sparsity to its logs."""
        self._clock.advance(self._steps_per_execution)
        self._catch_up()
        # As their keys are not those of the metrics, fit takes these logs as they are. For one replica, they are equal.
        if self._single_replica and isinstance(logs, dict):
            return {**logs, LOG_NAME: self.sparsity}
        return logs

    def on_test_begin(self, logs: Logs = None) -> None:
        if self._started:
            self._hold()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if not self._observes:
            self._clock.advance(1)
        self._clock.end_epoch()
        self._catch_up()
        self._hold()
        if logs is not None:
            logs[LOG_NAME] = self.sparsity

    def on_train_end(self, logs: Logs = None) -> None:
        self._catch_up()
        self._hold()
        if not self._warned and not all(kernel.done for kernel in self._kernels):
            warnings.warn(
                f"training ended at step {self._clock.step}, before the pruning schedule did: the sparsity is "
                f"{self.sparsity:.4f}; fit(initial_epoch=…) goes on from here",
                stacklevel=2,
            )
        self.release()

    # What both share.

    def release(self) -> None:
        """Takes the masks off the model, and leaves the zeros."""
        for kernel in self._kernels:
            kernel.mask.detach()
        if self._observes:
            train_function.leave(self.model, self)
        elif self._kernels:
            train_function.drop(self.model)
        self._reset()

    def _begin(self, manual: bool) -> None:
        """Attaches masks that keep everything, and makes the train function obey them."""
        fitting = train_function.exists(self.model) and not manual
        train_function.release_abandoned(self.model, before=self._model_set_at)
        self.release()
        self.attached_at = train_function.moment()
        self._manual, self._observes = manual, fitting
        self._complete = is_built(self.model)
        self._clock = TrainingClock(self.params.get("epochs"), self.params.get("steps"))
        try:
            self._schedule.position(self._clock)  # raises where the length of the training is missing
            self._attach()
        except XnnError:
            self.release()
            raise
        self._trace()
        last, total = self._schedule.last_step(self._clock), self._clock.total
        if last is not None and total is not None and last > total and self._target is not None:
            self._warned = True
            warnings.warn(
                f"the pruning schedule ends at step {last}, the training at step {total}: the target sparsity will not "
                "be reached",
                stacklevel=2,
            )

    def _attach(self) -> list[PrunedKernel]:
        """Masks the kernels that are not masked yet, and returns them."""
        attached = {id(kernel.mask.kernel.variable) for kernel in self._kernels}
        added: list[PrunedKernel] = []
        for kernel in self._chosen():
            target = first_match(kernel, self._per_layer, self._target)
            if id(kernel.variable) in attached or target == 0:
                continue
            if target is not None:
                self._pattern.check_kernel(kernel.name, kernel.layout)
            self._kernels.append(PrunedKernel(WeightMask(kernel, self.model), self._pattern, self._initial, target))
            added.append(self._kernels[-1])
        self._hold_masks = MaskHolder([kernel.mask for kernel in self._kernels])
        return added

    def _trace(self) -> None:
        """Has the train function traced anew, with the masks."""
        if self._observes:
            self._steps_per_execution = steps_per_execution(self.model)
            self._single_replica = replicas(self.model) == 1
            train_function.observe(self.model, self)
        else:
            train_function.drop(self.model)

    def _chosen(self) -> list[Kernel]:
        kernels = find_kernels(self.model)
        try:
            chosen = select(kernels, self._include, self._exclude, self._per_layer)
        except InputError:
            if self._complete:
                raise
            return []  # the layer that a pattern names may be built by the first step
        if self._complete and not chosen:
            raise InputError(
                f"{self.model.name} has no trainable Conv or Dense kernel to prune: name layers in include="
            )
        if self._complete and self._include is None:
            self._warn_of_frozen([kernel for kernel in kernels if kernel not in chosen])
        return chosen

    def _warn_of_frozen(self, kernels: list[Kernel]) -> None:
        frozen = [
            kernel.name
            for kernel in kernels
            if kernel.pruned_by_default
            and not kernel.trainable
            and not any(matches(kernel, pattern) for pattern in self._exclude)
        ]
        if frozen:
            warnings.warn(
                f"{len(frozen)} frozen kernels are not pruned ({', '.join(frozen[:5])}{', …' * (len(frozen) > 5)}): "
                "include= prunes them, exclude= silences this",
                stacklevel=2,
            )

    def _start_masks(self) -> None:
        if not self._started:
            self._started = True
            for kernel in self._kernels:
                kernel.begin()
            self._position = None
        self._move()

    def _catch_up(self, executed: bool = True) -> bool:
        """Masks what the first step has built, and moves all masks to where the clock stands.

        Args:
            executed: whether there has been a step.

        Returns:
            Whether masks changed; the weights obey them already.
        """
        if executed and not self._complete:
            self._complete = True
            if added := self._attach():
                self._trace()
                for kernel in added:
                    kernel.begin()
                self._position = None
        return self._move()

    def _move(self) -> bool:
        position = self._schedule.position(self._clock)
        if position is None or position == self._position:
            return False
        self._position = position
        moved = [kernel.move(position) for kernel in self._kernels]
        if any(moved):
            self._hold()
        return any(moved)

    def _hold(self) -> None:
        if self._kernels:
            self._hold_masks(getattr(self.model, "optimizer", None))


def _share(value: Any, argument: str) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 <= float(value) < 1:
        return float(value)
    raise InputError(f"{argument}={value!r}: give a share of zeros from 0.0 up to, and not including, 1.0")


def _targets(per_layer: Any) -> dict[str, float | None]:
    if not isinstance(per_layer, Mapping) or not all(isinstance(pattern, str) for pattern in per_layer):
        raise InputError(f"per_layer={per_layer!r}: give a dict of layer-name patterns and their targets")
    return {
        pattern: None if value is None else _share(value, f"per_layer[{pattern!r}]")
        for pattern, value in per_layer.items()
    }

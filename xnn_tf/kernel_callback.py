"""What callbacks that hold something on kernels while a model trains share: when it begins, and how it ends."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from schema.errors import InputError, XnnError
from xnn_tf import train_function
from xnn_tf.callback import Callback, Logs
from xnn_tf.keras_compat import is_built, replicas, require_tensorflow_keras, steps_per_execution, updates_done
from xnn_tf.kernels import Kernel, find_kernels
from xnn_tf.layer_patterns import Patterns, as_patterns, matches, select
from xnn_tf.pruning_schedule import PruningSchedule
from xnn_tf.training_clock import TrainingClock


class HeldKernel(Protocol):
    """What a callback holds on one kernel."""

    @property
    def kernel(self) -> Kernel:
        """Whose it is."""

    @property
    def done(self) -> bool:
        """Whether it has come to where the schedule leads."""

    def begin(self) -> None:
        """Looks at the weights that training starts with."""

    def move(self, position: float) -> bool:
        """Goes on to a position of the schedule, in [0, 1]. Returns whether the weights must obey something new."""

    def detach(self) -> None:
        """Takes it off, and leaves the weights as they are."""


class KernelCallback(Callback):
    """Chooses kernels by layer patterns, holds something on each, and moves it on as a schedule says.

    It works in `fit`, and in a custom loop by `start`, `step` and `finish`; on models that are built by their first
    step; and where an earlier `fit` was interrupted.
    """

    LOG_NAME: ClassVar[str]
    DOES: ClassVar[str]
    """What happens to a kernel: "pruned"."""

    def __init__(
        self,
        schedule: PruningSchedule,
        include: Patterns | None,
        exclude: Patterns | None,
        per_layer: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self._schedule = schedule
        self._per_layer = per_layer
        self._include = None if include is None else as_patterns(include, "include")
        self._exclude = as_patterns(exclude, "exclude")
        self._clock = TrainingClock(None, None)
        self._held: list[Any] = []
        self._model_set_at = 0
        self.attached_at = 0
        self._reset()

    def _reset(self) -> None:
        self._held = []
        self._position: float | None = None
        self._started = False  # an epoch has begun, and present weights are known
        self._complete = True  # all layers are built
        self._ran = False  # a batch has been begun
        self._observes = False  # the train function reports each execution
        self._steps_per_execution = 1
        self._single_replica = True
        self._manual = False  # between start() and finish()
        self._warned = False

    # What each callback does.

    @abstractmethod
    def _attach_to(self, kernel: Kernel) -> HeldKernel | None:
        """Holds something on a kernel, or None to leave it alone."""

    @abstractmethod
    def _hold(self) -> None:
        """Makes the weights obey now."""

    @abstractmethod
    def _measure(self) -> float:
        """What goes into the logs."""

    @abstractmethod
    def _unfinished(self) -> str:
        """What to warn of when training has ended before the schedule."""

    def _settle(self) -> None:
        """Makes the weights obey at the end of the training, whoever has assigned to them since the last update."""
        self._hold()

    def _attached(self) -> None:
        """Called when kernels have been attached."""

    # What a custom training loop calls.

    def start(self, model: Any, total_steps: int | None = None, initial_step: int = 0) -> None:
        """Begins in a custom training loop.

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
        self._start_held()

    def step(self) -> float:
        """Counts one update of the weights, moves on when it is time, and makes the weights obey.

        Call it after each update, outside of `tf.function`.

        Returns:
            What `fit` would have in its logs.
        """
        import tensorflow as tf

        name = type(self).__name__
        if not self._manual:
            raise InputError(f"{name}.step() before start(model): call start first")
        if tf.inside_function():
            raise InputError(f"{name}.step() counts in Python: call it outside of tf.function")
        self._clock.advance(1)
        if not self._catch_up():
            self._hold()
        return self._measure()

    def finish(self) -> None:
        """Ends it: what the weights are stays, and nothing else stays in the model."""
        self.on_train_end()

    # What Keras calls.

    def set_model(self, model: Any) -> None:
        require_tensorflow_keras(model)
        if model is not self.model and self._held:  # training of the former model was interrupted
            self.release()
        self._model_set_at = train_function.moment()
        super().set_model(model)

    def on_train_begin(self, logs: Logs = None) -> None:
        self._begin(manual=False)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._clock.begin_epoch(epoch, updates_done(self.model))
        self._start_held()  # only now: BackupAndRestore brings weights back in on_train_begin
        self._hold()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._clock.begin_batch(batch)
        # In a custom loop with a CallbackList, what the last batch did is first seen here.
        if not self._observes and not self._catch_up(executed=self._ran):
            self._hold()
        self._ran = True

    def before_execution(self, iterator: Any) -> Any:
        """Called before each call of the train function, with the iterator that it takes its batches from."""
        return iterator

    def after_execution(self, logs: Any) -> Any:
        """Moves on after each call of the train function, and adds to its logs."""
        self._clock.advance(self._steps_per_execution)
        self._catch_up()
        # As their keys are not those of the metrics, fit takes these logs as they are. For one replica, they are equal.
        if self._single_replica and isinstance(logs, dict):
            return {**logs, self.LOG_NAME: self._measure()}
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
            logs[self.LOG_NAME] = self._measure()

    def on_train_end(self, logs: Logs = None) -> None:
        self._catch_up()
        self._settle()
        if not self._warned and not all(held.done for held in self._held):
            warnings.warn(self._unfinished(), stacklevel=2)
        self.release()

    def release(self) -> None:
        """Takes everything off the model, and leaves the weights as they are."""
        for held in self._held:
            held.detach()
        if self._observes:
            train_function.leave(self.model, self)
        elif self._held:
            train_function.drop(self.model)
        self._reset()

    # What both share.

    def _begin(self, manual: bool) -> None:
        """Attaches to the kernels, and makes the train function obey."""
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

    def _attach(self) -> list[HeldKernel]:
        """Attaches to the kernels that nothing is held on yet, and returns what holds them."""
        known = {id(held.kernel.variable) for held in self._held}
        added: list[HeldKernel] = []
        for kernel in self._chosen():
            if id(kernel.variable) not in known and (held := self._attach_to(kernel)) is not None:
                self._held.append(held)
                added.append(held)
        self._attached()
        return added

    def _trace(self) -> None:
        """Has the train function traced anew."""
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
                f"{self.model.name} has no trainable Conv or Dense kernel to be {self.DOES}: name layers in include="
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
                f"{len(frozen)} frozen kernels are not {self.DOES} ({', '.join(frozen[:5])}"
                f"{', …' * (len(frozen) > 5)}): include= takes them, exclude= silences this",
                stacklevel=2,
            )

    def _start_held(self) -> None:
        if not self._started:
            self._started = True
            for held in self._held:
                held.begin()
            self._position = None
        self._move()

    def _catch_up(self, executed: bool = True) -> bool:
        """Attaches to what the first step has built, and moves on to where the clock stands.

        Args:
            executed: whether there has been a step.

        Returns:
            Whether something changed; the weights obey it already.
        """
        if executed and not self._complete:
            self._complete = True
            if added := self._attach():
                self._trace()
                for held in added:
                    held.begin()
                self._position = None
        return self._move()

    def _move(self) -> bool:
        position = self._schedule.position(self._clock)
        if position is None or position == self._position:
            return False
        self._position = position
        moved = [held.move(position) for held in self._held]
        if any(moved):
            self._hold()
        return any(moved)

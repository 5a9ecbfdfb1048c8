"""When sparsity rises: a position between 0 (the initial sparsity) and 1 (the target) for each step of training."""

import numbers
import warnings
from abc import ABC, abstractmethod
from typing import Any

from schema.errors import InputError
from xnn_tf.training_clock import TrainingClock

Point = int | float
"""A moment of training: a whole number counts steps, a fraction from 0.0 to 1.0 is a share of the planned training."""

MAX_FREQUENCY = 100
MIN_UPDATES = 16
"""Unless told otherwise, masks change every 100 steps, or 16 times during a shorter ramp."""


class PruningSchedule(ABC):
    """A staircase: the position changes every few steps only, and depends on the step alone, so that a resumed run
    finds the masks that it had."""

    @abstractmethod
    def position(self, clock: TrainingClock) -> float | None:
        """How far sparsity has risen from initial (0) to target (1); None before pruning begins.

        Raises:
            InputError: it depends on the length of the training, which is unknown.
        """

    @abstractmethod
    def last_step(self, clock: TrainingClock) -> int | None:
        """The step at which the target is reached, or None where it is not known."""


class RampSchedule(PruningSchedule):
    """Rises from `begin` to `end` along p = 1 − (1 − t)^power, where t goes from 0 to 1.

    Power 3 is the cubic schedule of Zhu and Gupta (2017, arXiv:1710.01878). With `end` equal to `begin` the target
    comes at once.
    """

    def __init__(self, begin: Point, end: Point, frequency: int | None, power: int) -> None:
        self._begin, self._end, self._frequency, self._power = begin, end, frequency, power
        self._warned = False

    def position(self, clock: TrainingClock) -> float | None:
        begin, end = _in_steps(self._begin, clock), _in_steps(self._end, clock)
        if begin is None or end is None:
            return self._position_by_epoch(clock)
        if clock.step < begin:
            return None
        if clock.step >= end:
            return 1.0
        frequency = self._frequency or max(1, min(MAX_FREQUENCY, (end - begin) // MIN_UPDATES))
        return self._rise((clock.step - begin) // frequency * frequency / (end - begin))

    def last_step(self, clock: TrainingClock) -> int | None:
        return _in_steps(self._end, clock)

    def _rise(self, t: float) -> float:
        return 1 - (1 - t) ** self._power

    def _position_by_epoch(self, clock: TrainingClock) -> float | None:
        """The position while the length of an epoch is unknown: shares of the training count whole epochs."""
        if clock.epochs is None:
            raise InputError(
                "begin and end are shares of a training whose length is unknown: call start(model, total_steps=…), or "
                "set_params({'epochs': …, 'steps': …}), or give begin and end as whole numbers of steps"
            )
        # Pruning at the end of a single epoch would leave no training after it, so there the target comes at once.
        single = clock.epoch + 1 >= clock.epochs
        begins_now = _reached(self._begin, clock) or (single and isinstance(self._begin, float))
        if not begins_now:
            return None
        if _reached(self._end, clock):
            return 1.0
        if single and isinstance(self._end, float):
            if clock.epochs == 1 and not self._warned:
                self._warned = True
                warnings.warn(
                    "PruneCallback prunes to the target at once, since begin and end are shares of a single epoch of "
                    "unknown length: give fit(steps_per_epoch=…), or begin and end as whole numbers of steps",
                    stacklevel=2,
                )
            return 1.0
        if isinstance(self._begin, float) and isinstance(self._end, float):
            return self._rise((clock.epoch / clock.epochs - self._begin) / (self._end - self._begin))
        return 0.0


class TfmotSchedule(PruningSchedule):
    """A schedule of the TensorFlow Model Optimization toolkit, or another callable `step -> (should_prune, sparsity)`.

    Attributes:
        initial_sparsity: where it starts.
        target_sparsity: where it ends.
    """

    def __init__(self, schedule: Any, target_sparsity: float) -> None:
        """Reads the bounds from the attributes of tfmot's classes.

        Args:
            schedule: PolynomialDecay, ConstantSparsity, or another PruningSchedule.
            target_sparsity: the target of a schedule that does not declare its own.
        """
        self._schedule = schedule
        self.initial_sparsity = float(getattr(schedule, "initial_sparsity", 0.0))
        declared = getattr(schedule, "final_sparsity", getattr(schedule, "target_sparsity", None))
        self.target_sparsity = target_sparsity if declared is None else float(declared)
        self._ends_at_target = declared is not None
        self._begin = int(getattr(schedule, "begin_step", 0))
        self._end = int(getattr(schedule, "end_step", -1))  # -1: never
        self._frequency = int(getattr(schedule, "frequency", 1))
        self._known: tuple[int, float] | None = None

    def position(self, clock: TrainingClock) -> float | None:
        if clock.step < self._begin:
            return None
        step = self._begin + (clock.step - self._begin) // self._frequency * self._frequency
        if 0 <= self._end <= clock.step:
            if self._ends_at_target:
                return 1.0
            step = self._end
        if self._known is None or self._known[0] != step:
            self._known = step, self._position_at(step)
        return self._known[1]

    def last_step(self, clock: TrainingClock) -> int | None:
        return self._end if self._end >= 0 else None

    def _position_at(self, step: int) -> float:
        import tensorflow as tf

        try:
            _, sparsity = self._schedule(tf.constant(step, tf.int64))
            sparsity = float(sparsity)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"schedule {type(self._schedule).__name__} does not return (should_prune, sparsity) for a step: {error}"
            ) from error
        span = self.target_sparsity - self.initial_sparsity
        position = 1.0 if span == 0 else (sparsity - self.initial_sparsity) / span
        return 1.0 if position > 1 - 1e-6 else max(0.0, position)  # tfmot computes in float32


def pruning_schedule(
    schedule: Any, begin: Point, end: Point, frequency: int | None, target_sparsity: float
) -> PruningSchedule:
    """Reads the `schedule`, `begin`, `end` and `frequency` arguments.

    Args:
        schedule: `"cubic"`, `"constant"`, or a tfmot schedule, which brings its own begin, end and frequency.
        begin: when the initial sparsity is applied.
        end: when the target is reached.
        frequency: steps between updates, or None to choose.
        target_sparsity: for a schedule object that does not declare its own.

    Raises:
        InputError: an argument is of no use.
    """
    begin, end = _point(begin, "begin"), _point(end, "end")
    if isinstance(begin, int) == isinstance(end, int) and end < begin:
        raise InputError(f"end={end} lies before begin={begin}")
    if frequency is not None and (not _is_whole(frequency) or frequency < 1):
        raise InputError(f"frequency={frequency!r}: give the steps between mask updates as a whole number from 1")
    if schedule == "cubic":
        return RampSchedule(begin, end, frequency, power=3)
    if schedule == "constant":
        return RampSchedule(begin, begin, frequency, power=1)
    if callable(schedule) and not isinstance(schedule, type):
        return TfmotSchedule(schedule, target_sparsity)
    raise InputError(
        f'unknown schedule {schedule!r}: give "cubic", "constant", or a schedule object of '
        "tensorflow_model_optimization.sparsity.keras"
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _point(value: Any, argument: str) -> Point:
    if _is_whole(value) and value >= 0:
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral) and 0 <= float(value) <= 1:
        return float(value)
    raise InputError(
        f"{argument}={value!r}: give a step as a whole number from 0, or a share of the training from 0.0 to 1.0"
    )


def _in_steps(point: Point, clock: TrainingClock) -> int | None:
    """The step at which a point lies; None where that is not known yet."""
    if isinstance(point, int):
        return point
    if point == 0:
        return 0
    return None if clock.total is None else round(point * clock.total)


def _reached(point: Point, clock: TrainingClock) -> bool:
    """Whether a point has come, by whole epochs where it is a share of the training."""
    if isinstance(point, int):
        return clock.step >= point
    return clock.epochs is not None and clock.epoch / clock.epochs >= point

"""Hooks into `model.train_function`, the compiled step that `fit` calls, which callbacks alone cannot do.

A callback that changes what a step computes (a constraint, a wrapped layer) needs the step traced anew, though an
earlier `fit` may have left a traced one. And what it reports must be in the logs *before* the callbacks run, or those
that come earlier in the list miss it.
"""

import itertools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

_moments = itertools.count()


class Observer(Protocol):
    """What is told of each execution of the train function."""

    attached_at: int

    def after_execution(self, logs: Any) -> Any:
        """Called after each execution with its logs; returns the logs for the callbacks."""

    def release(self) -> None:
        """Undoes all that it did to the model, weights aside."""


@runtime_checkable
class BatchObserver(Protocol):
    """An observer that is told of the batches too."""

    def before_execution(self, iterator: Any) -> Any:
        """Called before each execution with the iterator of its batches; returns it, or another one of its type."""


def moment() -> int:
    """A number greater than all that were returned before."""
    return next(_moments)


def exists(model: Any) -> bool:
    """Whether the model has a train function: in a `fit`, or after `fit` or `train_on_batch`."""
    return getattr(model, "train_function", None) is not None


def drop(model: Any) -> None:
    """Drops the train function, so that the next `fit` or `train_on_batch` traces a new one."""
    if exists(model):
        model.train_function = None


def observe(model: Any, observer: Observer) -> None:
    """Makes a new train function, observed by `observer` and by those who observe the present one."""
    everyone = observers(model)
    if observer not in everyone:
        everyone.append(observer)
    model.train_function = None
    made = model.make_train_function()  # Keras 3 sets the attribute, tf_keras returns the function as well
    model.train_function = _observed(model.train_function if made is None else made, everyone)


def leave(model: Any, observer: Observer) -> None:
    """Ends what `observe` began. When nobody is left, the train function is dropped."""
    everyone = observers(model)
    if observer in everyone:
        everyone.remove(observer)
    if not everyone:
        drop(model)


def observers(model: Any) -> list[Observer]:
    """The live list of who observes the model's train function."""
    return getattr(getattr(model, "train_function", None), "observers", [])


def release_abandoned(model: Any, before: int) -> None:
    """Releases observers that an interrupted `fit` left attached.

    Args:
        model: whose train function they observe.
        before: a moment at which this `fit` had begun and none of its callbacks had been attached: when its model was
        set.
    """
    for observer in tuple(observers(model)):
        if observer.attached_at < before:
            observer.release()


def _observed(function: Callable[[Any], Any], everyone: list[Observer]) -> Callable[[Any], Any]:
    def train_function(iterator: Any) -> Any:
        for observer in tuple(everyone):
            if isinstance(observer, BatchObserver):
                iterator = observer.before_execution(iterator)
        logs = function(iterator)
        for observer in tuple(everyone):
            logs = observer.after_execution(logs)
        return logs

    train_function.observers = everyone  # type: ignore[attr-defined]
    return train_function

"""Adds to, or mixes, the loss that a model trains on, without a model of another class around it.

Both Kerases' `train_step` asks `model.compute_loss`. While parts are attached, the model instance has one of its own,
which gives the loss to each part in turn. Evaluation and prediction keep the loss that they had, and what is saved is
the model as it was.
"""

import threading
from collections.abc import Callable
from typing import Any, Protocol

_ARGUMENTS = ("x", "y", "y_pred", "sample_weight")


class LossPart(Protocol):
    """Changes the loss of one step of training; called while the step is traced."""

    def __call__(self, loss: Any, x: Any, y_pred: Any, sample_weight: Any) -> Any:
        """The new loss.

        Args:
            loss: scalar tensor. Under a `tf.distribute` strategy it is this replica's share: a mean over the batch is
                divided by the number of replicas (`keras_compat.replicas`).
            x: the batch of inputs.
            y_pred: the model's outputs.
            sample_weight: weights of the samples, or None.
        """


class _ComputeLoss:
    """Stands for `model.compute_loss` while there are parts."""

    def __init__(self, model: Any) -> None:
        self.parts: list[LossPart] = []
        self.traced = False  # a step that was traced asked for the loss
        self._original = model.compute_loss
        self._step = model.train_step
        self._training = threading.local()  # each replica of a strategy is traced by a thread of its own

    def train_step(self, data: Any) -> Any:
        self._training.now = True
        try:
            return self._step(data)
        finally:
            self._training.now = False

    def compute_loss(self, *arguments: Any, **named: Any) -> Any:
        loss = self._original(*arguments, **named)
        if not getattr(self._training, "now", False):
            return loss
        self.traced = True
        values = dict(zip(_ARGUMENTS, arguments, strict=False)) | named
        for part in self.parts:
            loss = part(loss, values.get("x"), values.get("y_pred"), values.get("sample_weight"))
        return loss


def attach(model: Any, part: LossPart, first: bool = False) -> None:
    """Adds a part. It counts in train functions traced from now on: see `train_function`.

    Args:
        model: of either Keras; its `compute_loss` and `train_step` may be overridden.
        part: called after the parts that are attached already.
        first: before them: for a part that weighs the model's own loss, and not what others add to it.
    """
    holder = _holder(model)
    if holder is None:
        holder = _ComputeLoss(model)
        _replace(model, "compute_loss", holder.compute_loss)
        _replace(model, "train_step", holder.train_step)
    if part not in holder.parts:
        holder.parts.insert(0 if first else len(holder.parts), part)


def detach(model: Any, part: LossPart) -> None:
    """Removes a part; with the last one, the model has its own methods back."""
    holder = _holder(model)
    if holder is None:
        return
    holder.parts = [other for other in holder.parts if other != part]
    if not holder.parts:
        vars(model).pop("compute_loss")
        vars(model).pop("train_step")


def asked(model: Any) -> bool:
    """Whether a step of training that was traced since the first part was attached has asked for the loss at all."""
    holder = _holder(model)
    return holder is not None and holder.traced


def _holder(model: Any) -> _ComputeLoss | None:
    owner = getattr(vars(model).get("compute_loss"), "__self__", None)
    return owner if isinstance(owner, _ComputeLoss) else None


def _replace(model: Any, name: str, method: Callable) -> None:
    vars(model)[name] = method  # not by setattr, where both Kerases look for what to track and save

"""How good a model is on validation data: one number, the higher the better, from the outputs of the `.xnn` file."""

from collections.abc import Callable
from typing import Any

import numpy as np

import runtime
from schema.errors import InputError
from xnn_tf.compression.data import Data
from xnn_tf.model_outputs import OutputKind

Metric = Callable[[Any, Any], float]
"""(targets, outputs) of the whole validation data, numpy -> score; the higher the better."""


def outputs_of(model: runtime.Model, x: Any) -> Any:
    """The outputs of a loaded model for one batch."""
    if isinstance(x, tuple):
        return model(*x)
    return model(x)


def score(xnn: bytes, validation: Data, metric: Metric) -> float:
    """Runs an `.xnn` file over the validation data, and measures."""
    model = runtime.load(xnn)
    targets, outputs = [], []
    for x, y in validation.batches():
        outputs.append(_first(outputs_of(model, x)))
        targets.append(_first(y))
    return float(metric(np.concatenate(targets), np.concatenate(outputs)))


def _first(structure: Any) -> np.ndarray:
    """The first output of several."""
    if isinstance(structure, dict):
        return _first(next(iter(structure.values())))
    return _first(structure[0]) if isinstance(structure, tuple) else np.asarray(structure)


def metric_of(kind: OutputKind) -> tuple[str, Metric]:
    """The usual measure for a kind of output, and its name."""
    if kind in ("logits", "probabilities"):
        return "accuracy", accuracy
    if kind == "values":
        return "R²", coefficient_of_determination
    threshold = 0.0 if kind == "binary logits" else 0.5
    return "accuracy", lambda y, p: float(np.mean((p > threshold).reshape(y.shape) == (y > 0.5)))


def accuracy(y: np.ndarray, outputs: np.ndarray) -> float:
    """Share of samples (or positions) whose greatest output is the class. y: class numbers, or one-hot."""
    classes = outputs.argmax(axis=-1)
    if y.ndim == outputs.ndim and y.shape[-1] == outputs.shape[-1] and outputs.shape[-1] > 1:
        return float(np.mean(y.argmax(axis=-1) == classes))
    if y.size != classes.size:
        raise InputError(f"targets of shape {y.shape} for outputs of shape {outputs.shape}: give compress(metric=…)")
    return float(np.mean(y.reshape(classes.shape) == classes))


def coefficient_of_determination(y: np.ndarray, outputs: np.ndarray) -> float:
    """R²: 1 for values that are right, 0 for the mean of all."""
    y = y.reshape(outputs.shape).astype(np.float64)
    spread = np.sum(np.square(y - y.mean(axis=0)))
    return 1.0 - float(np.sum(np.square(y - outputs)) / max(spread, np.finfo(np.float64).tiny))

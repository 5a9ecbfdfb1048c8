"""What the model is trained for: its loss, its optimizer's class, and what is measured."""

import importlib
from typing import Any

import numpy as np

from schema.errors import InputError
from xnn_tf.compression.data import Data
from xnn_tf.compression.scoring import Metric, metric_of
from xnn_tf.keras_compat import require_tensorflow_keras
from xnn_tf.model_outputs import OutputKind, output_kinds

PEAKS = {"sgd": 0.02, "adam": 1e-3, "adamw": 1e-3, "nadam": 1e-3, "rmsprop": 5e-4}
"""Peak learning rates of fine-tuning, by the optimizer's class; ANY for others."""
ANY = 1e-3


class Task:
    """How copies of a base model are compiled and measured.

    Attributes:
        keras: the module of the model's Keras.
        kind: what its first output is.
        metric_name: what `metric` is called.
        metric: (targets, outputs) -> score.
    """

    def __init__(self, base: Any, train: Data, metric: Metric | None) -> None:
        """Reads loss and optimizer of a compiled model, or finds what fits the outputs and targets of one that is not.

        Raises:
            InputError: no loss fits.
        """
        self.keras = importlib.import_module(require_tensorflow_keras(base))
        self.kind: OutputKind = output_kinds(base)[0]
        self.metric_name, self.metric = metric_of(self.kind) if metric is None else ("score", metric)
        optimizer = getattr(base, "optimizer", None)
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # inside of a loss scale
        self._optimizer = self.keras.optimizers.Adam if optimizer is None else type(optimizer)
        self._config = {} if optimizer is None else _without_rate(optimizer.get_config())
        self._loss = getattr(base, "loss", None)
        self._loss_weights = _loss_weights(base) if self._loss is not None else None
        self._jit = getattr(base, "jit_compile", None) if self._loss is not None else None
        if self._loss is None:
            self._loss = self._default_loss(base, train.first()[1])

    @property
    def peak(self) -> float:
        """Peak learning rate for fine-tuning with the model's optimizer."""
        return PEAKS.get(self._optimizer.__name__.lower(), ANY)

    def compile(self, model: Any, learning_rate: float, steps: int) -> None:
        """Compiles with a learning rate that falls from a peak to zero by a cosine.

        Args:
            model: a copy of the base model, or what became of it.
            learning_rate: at the first step.
            steps: of the whole training.
        """
        rate = self.keras.optimizers.schedules.CosineDecay(learning_rate, max(1, steps))
        config = self._config
        if self._optimizer.__name__ == "SGD" and not config.get("momentum"):
            config = config | {"momentum": 0.9}
        config = config | {"learning_rate": self.keras.optimizers.schedules.serialize(rate)}
        optimizer = self._optimizer.from_config(config)
        more: dict[str, Any] = {}
        if self._loss_weights is not None:
            more["loss_weights"] = self._loss_weights
        if self._jit is not None:
            more["jit_compile"] = self._jit
        if self.metric_name == "accuracy" and not isinstance(self._loss, (dict, list, tuple)):
            more["metrics"] = ["accuracy"]
        model.compile(optimizer=optimizer, loss=self._loss, **more)

    def _default_loss(self, base: Any, y: Any) -> Any:
        losses = self.keras.losses
        if isinstance(y, (dict, tuple)) or len(getattr(base, "outputs", None) or [0]) != 1:
            raise InputError(f"{base.name} has several outputs and is not compiled: compile it with its losses first")
        if self.kind == "values":
            return losses.MeanSquaredError()
        if self.kind.startswith("binary"):
            return losses.BinaryCrossentropy(from_logits=self.kind == "binary logits")
        logits = self.kind == "logits"
        classes = base.outputs[0].shape[-1] if getattr(base, "outputs", None) else None
        if np.ndim(y) > 1 and np.shape(y)[-1] == classes and classes != 1:
            return losses.CategoricalCrossentropy(from_logits=logits)
        if not np.issubdtype(np.asarray(y).dtype, np.integer) and not np.array_equal(y, np.round(y)):
            return losses.MeanSquaredError()
        return losses.SparseCategoricalCrossentropy(from_logits=logits)


def _without_rate(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("learning_rate", "name", "is_legacy_optimizer")}


def _loss_weights(base: Any) -> Any:
    config = base.get_compile_config() if hasattr(base, "get_compile_config") else None
    return (config or {}).get("loss_weights")

"""What a stage works on: the model as it is now, the data, and what it may spend."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import converter
from xnn_tf.compression.coded_size import values
from xnn_tf.compression.data import Data
from xnn_tf.compression.models import config_of, copy_of
from xnn_tf.compression.progress import Progress
from xnn_tf.compression.scoring import score
from xnn_tf.compression.task import Task
from xnn_tf.distillation import DistillCallback
from xnn_tf.kernels import Kernel, as_they_were, find_kernels
from xnn_tf.layer_patterns import Patterns, select


@dataclass
class Context:
    """Handed to each stage.

    Attributes:
        base: the model to compress, which stays as it is; the teacher.
        model: a copy of it, or what has become of it; a stage trains it, or puts another in its place.
        task: loss, optimizer and measure.
        train, validation: the data.
        target_bytes: of the file that this level aims at.
        options: of the converter, for files by which sizes are judged.
        epochs: that this stage may train.
        found: what stages found, by name: `sensitivity` has curves.
        keepers: make the callbacks that hold what earlier stages made while this one trains.
        exclude: layer-name patterns of what is not compressed.
        distill: (temperature, weight) of the teacher in the loss, or None.
        strategy: the `tf.distribute` strategy to train under, or None.
    """

    base: Any
    model: Any
    task: Task
    train: Data
    validation: Data
    progress: Progress
    target_bytes: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 1
    found: dict[str, Any] = field(default_factory=dict)
    keepers: list[Callable[[Context], list[Any]]] = field(default_factory=list)
    exclude: Patterns = ()
    distill: tuple[float, float] | None = None
    strategy: Any = None
    calibration_samples: int = 512
    _mean: Callable[[Any], Any] | None = field(default=None, repr=False)

    def scope(self) -> AbstractContextManager:
        """Of the strategy, for models that are to be trained."""
        return nullcontext() if self.strategy is None else self.strategy.scope()

    def kernels(self) -> list[Kernel]:
        """The kernels that are compressed: those that training changes, depthwise ones left out."""
        trained = [kernel for kernel in find_kernels(self.model) if kernel.trainable and kernel.layout.inputs]
        kept = {id(k) for k in select(trained, include="*/*", exclude=self.exclude)} if trained else set()
        return [kernel for kernel in trained if id(kernel) in kept]

    def weights(self) -> dict[str, np.ndarray]:
        """Their values, by `path/weight`."""
        return {kernel.name: values(kernel) for kernel in self.kernels()}

    def fit(self, callbacks: Sequence[Any], epochs: int | None = None, learning_rate: float | None = None) -> dict:
        """Trains the model, with the teacher and with what keeps the results of earlier stages.

        Args:
            callbacks: the stage's own.
            epochs: None for all that the stage may train.
            learning_rate: at the first step, from where it falls to 0; None takes the task's.

        Returns:
            `epochs`, `seconds`, and the last epoch's logs.
        """
        epochs = self.epochs if epochs is None else epochs
        steps = self.train.steps or 1000
        with self.scope():
            self.task.compile(self.model, learning_rate or self.task.peak, epochs * steps)
        watching = self.progress.epochs(epochs)
        kept = [callback for keeper in self.keepers for callback in keeper(self)]
        taught = []
        if self.distill is not None:
            taught = [DistillCallback(self.base, temperature=self.distill[0], weight=self.distill[1])]
        start = time.perf_counter()
        history = self.model.fit(
            **self.train.fit_arguments(), epochs=epochs, verbose=0, callbacks=[*taught, *kept, *callbacks, watching]
        )
        logs = {name: float(numbers[-1]) for name, numbers in history.history.items() if np.ndim(numbers[-1]) == 0}
        return {"epochs": epochs, "seconds": time.perf_counter() - start, "logs": logs}

    def convert(self, quantize: str = "none", **options: Any) -> converter.Result:
        """The `.xnn` file of the model as it is; calibrated on training data where that is needed."""
        calibrated = quantize in ("int8", "int16x8", "int8-weights")
        calibration = self.train.inputs(self.calibration_samples) if calibrated else None
        model = self.model
        if self.strategy is not None:  # variables of several replicas cannot be frozen
            model = self.copy(model.get_weights(), config_of(model, self.base), trained=False)
        return converter.convert(model, quantize, calibration, **options)

    def size(self) -> int:
        """Bytes of the file of the model as it is."""
        return len(self.convert(**self.options).bytes)

    def size_with(self, weights: Mapping[str, np.ndarray]) -> int:
        """Bytes of the file that the model would have with these kernels, by `path/weight`."""
        changed = [kernel for kernel in self.kernels() if kernel.name in weights]
        with as_they_were(changed):
            for kernel in changed:
                kernel.variable.assign(weights[kernel.name])
            return self.size()

    def score(self, xnn: bytes) -> float:
        """On the validation data."""
        return score(xnn, self.validation, self.task.metric)

    def copy(self, weights: Sequence[np.ndarray], config: str | None, trained: bool) -> Any:
        """A new model of the base's architecture, or of the given one, with these weights.

        Args:
            weights: in the order of `get_weights()`.
            config: see `models.copy_of`.
            trained: whether it will be: then it belongs to the strategy.
        """
        with self.scope() if trained else nullcontext():
            return copy_of(self.base, self.task.keras, weights, config, self.train.first()[0])

    def agreed(self, seconds: float) -> float:
        """What was measured, the mean over all workers: so that they decide alike."""
        if self.strategy is None or not self.strategy.extended._in_multi_worker_mode():
            return seconds
        import tensorflow as tf

        if self._mean is None:
            self._mean = _mean_over_workers(self.strategy)
        return float(self._mean(tf.constant(seconds, tf.float32)))


def _mean_over_workers(strategy: Any) -> Callable[[Any], Any]:
    """A function of each worker's number, which all of them call."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def mean(number: Any) -> Any:
        each = strategy.run(lambda mine: mine, args=(number,))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, each, axis=None)

    return mean


def exactly(names: Sequence[str]) -> list[str]:
    """Patterns that match these kernel names alone, whatever signs are in them."""
    return [glob.escape(name) for name in names]

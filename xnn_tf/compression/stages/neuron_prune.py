"""Neuron pruning: whole filters and units are trained away, and the model becomes smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xnn_tf.compression.context import Context
from xnn_tf.compression.models import config_of
from xnn_tf.compression.stages.base import Stage
from xnn_tf.neuron_prune_callback import NeuronPruneCallback
from xnn_tf.shrink import shrink


@dataclass(frozen=True)
class NeuronPrune(Stage):
    """Prunes neurons and shrinks the model; a model that has been shrunk by an earlier level stays as it is.

    Attributes:
        target: share of what is pruned.
        of: "weights", "macs" or "neurons".
        criterion: "l2", "bn_gamma", "taylor", or a function, as of NeuronPruneCallback.
        end: share of the training at which the target is reached.
        learning_rate: at the start; None takes the optimizer's usual one.
    """

    name: ClassVar[str] = "neuron-prune"
    share: float = 0.3
    target: float = 0.2
    of: str = "weights"
    criterion: str = "l2"
    end: float = 0.6
    learning_rate: float | None = None

    def run(self, context: Context) -> dict[str, Any]:
        if config_of(context.model, context.base) is not None:
            return {"pruned_neurons": 0.0}
        callback = NeuronPruneCallback(
            self.target, of=self.of, criterion=self.criterion, end=self.end, exclude=context.exclude or None
        )
        trained = context.fit([callback], learning_rate=self.learning_rate)
        with context.scope():
            context.model = shrink(context.model)
        return trained

    def suggest(self, trial: Any) -> NeuronPrune:
        return replace(self, target=trial.suggest_float("neurons", 0.0, 0.6))

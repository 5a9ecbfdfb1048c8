"""Synapse pruning with retraining, to sparsities that make the file as small as the level asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xnn_tf.compression.allocation import Rule, allot, pruned
from xnn_tf.compression.coded_size import coded_bytes_of, quantized
from xnn_tf.compression.context import Context, exactly
from xnn_tf.compression.stages.base import Stage, levels_of
from xnn_tf.prune_callback import PruneCallback

_TRIES = 3


@dataclass(frozen=True)
class Prune(Stage):
    """Prunes along the cubic schedule while the model trains.

    Attributes:
        rule: how sparsity is shared out among layers: "lamp", "sensitivity" (needs MeasureSensitivity before), "std",
        "uniform". levels: distinct values that a kernel will have in the end; the size that is aimed at counts on them.
        end: share of the training at which the target is reached. learning_rate: at the start; None takes the
        optimizer's usual one. iterations: prune and retrain so many times, each time further (1: gradually in one
        training).
    """

    name: ClassVar[str] = "prune"
    share: float = 0.6
    rule: Rule = "lamp"
    levels: int = 16
    conv_levels: int | None = None
    end: float = 0.6
    learning_rate: float | None = None
    iterations: int = 1

    def run(self, context: Context) -> dict[str, Any]:
        trained: dict[str, Any] = {}
        rounds = _parts(context.epochs, self.iterations)
        schedule = {"end": self.end} if self.iterations == 1 else {"schedule": "constant", "begin": 0}
        for number, epochs in enumerate(rounds, start=1):
            # What training has changed since the last round counts: where the zeros lie, and which neurons are left.
            sparsities = self._sparsities(context)
            # Each round takes the same share of what is left.
            reached = {exactly([n])[0]: 1 - (1 - s) ** (number / len(rounds)) for n, s in sparsities.items()}
            callback = PruneCallback(None, per_layer=reached, include=exactly(list(sparsities)), **schedule)
            done = context.fit([callback], epochs, self.learning_rate)
            done["epochs"] += trained.get("epochs", 0)
            done["seconds"] += trained.get("seconds", 0.0)
            trained = done
        return {"sparsities": sparsities, **trained}

    def _sparsities(self, context: Context) -> dict[str, float]:
        """Those at which the file of the model, as it is now, would have the bytes that are aimed at."""
        weights = context.weights()
        curves = {n: c for n, c in context.found.get("sensitivity", {}).get("curves", {}).items() if n in weights}
        levels = levels_of(context, self.levels, self.conv_levels)
        besides = 0  # bytes of a file that kernels do not explain, less those of neurons that are left out of it
        for _ in range(_TRIES):
            target = max(1.0, context.target_bytes - besides)
            sparsities = allot(weights, self.rule, target, levels, curves or None)
            made = {name: quantized(pruned(weights[name], s), levels[name]) for name, s in sparsities.items()}
            besides = context.size_with(made) - sum(map(coded_bytes_of, made.values()))
        return sparsities

    def suggest(self, trial: Any) -> Prune:
        return replace(self, end=trial.suggest_float("prune_end", 0.3, 0.8))

    def keep(self, context: Context) -> list[Any]:
        return [PruneCallback(None, include=exactly(list(context.weights())))]


def _parts(epochs: int, count: int) -> list[int]:
    """Epochs of each of `count` rounds, one at least, the last ones the longest."""
    count = max(1, min(count, epochs))
    return [epochs // count + (index >= count - epochs % count) for index in range(count)]

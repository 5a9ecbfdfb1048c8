"""Pruning and quantization at once, for bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xnn_tf.cluster_callback import ClusterCallback
from xnn_tf.compression.context import Context, exactly
from xnn_tf.compression.stages.base import Stage, levels_of
from xnn_tf.prune_callback import PruneCallback
from xnn_tf.rate_callback import RateCallback


@dataclass(frozen=True)
class RateTune(Stage):
    """Trains until the kernels take the bytes that the level aims at.

    Attributes:
        levels: on each side of zero: weights are multiples of a step, up to so many of it.
        conv_levels: of convolutions; None: as many.
        end: share of the training at which there are all zeros.
        quantize_begin, quantize_end: between which weights are pulled to their levels.
        learning_rate: at the start; None takes the optimizer's usual one.
    """

    name: ClassVar[str] = "rate"
    share: float = 1.0
    levels: int = 2
    conv_levels: int | None = None
    end: float = 0.5
    quantize_begin: float = 0.5
    quantize_end: float = 0.8
    learning_rate: float | None = None

    def run(self, context: Context) -> dict[str, Any]:
        levels = levels_of(context, self.levels, self.conv_levels)
        callback = RateCallback(
            context.target_bytes,
            size_of=lambda model: context.size(),
            end=self.end,
            quantize_begin=self.quantize_begin,
            quantize_end=self.quantize_end,
            include=exactly(list(levels)),
            per_layer={exactly([name])[0]: count for name, count in levels.items()},
        )
        return {"levels": levels, **context.fit([callback], learning_rate=self.learning_rate)}

    def suggest(self, trial: Any) -> RateTune:
        begin = trial.suggest_float("quantize_begin", 0.3, 0.7)
        return replace(
            self,
            levels=trial.suggest_int("levels", 1, 16, log=True),
            end=trial.suggest_float("rate_end", 0.3, 0.7),
            quantize_begin=begin,
            quantize_end=begin + trial.suggest_float("quantize_for", 0.1, 0.3),
        )

    def keep(self, context: Context) -> list[Any]:
        names = exactly(list(context.weights()))
        return [PruneCallback(None, include=names), ClusterCallback(None, include=names)]

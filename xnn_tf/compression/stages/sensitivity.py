"""How much the model's answers change when one layer is pruned: measured, layer after layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xnn_tf.compression.context import Context
from xnn_tf.compression.stages.base import Stage
from xnn_tf.distillation import DistillCallback
from xnn_tf.sensitivity import measure


@dataclass(frozen=True)
class MeasureSensitivity(Stage):
    """Finds curves (sparsity, damage) for each layer, without any training: those of `xnn_tf.sensitivity`.

    The damage is how far the outputs go from those of the base model (a divergence as of distilling, at temperature 1),
    the mean over training samples.

    Attributes:
        sparsities: at which each layer is tried.
        samples: of the training data.
    """

    name: ClassVar[str] = "sensitivity"
    once: ClassVar[bool] = True
    sparsities: tuple[float, ...] = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
    samples: int = 256

    def run(self, context: Context) -> dict[str, Any]:
        batches = context.train.inputs(self.samples)
        distance = DistillCallback(context.base, temperature=1.0)
        distance.set_model(context.model)

        def damage() -> float:
            apart = np.mean([distance.loss(x, context.model.predict_on_batch(_listed(x))) for x in batches])
            return max(0.0, float(apart))  # what float32 leaves of no divergence may be less

        found = measure(
            context.model, context.kernels(), [(x, None, None) for x in batches], self.sparsities, loss=damage
        )
        return {"curves": {curve.name: [list(point) for point in curve.points] for curve in found.curves}}


def _listed(x: Any) -> Any:
    return list(x) if isinstance(x, tuple) else x

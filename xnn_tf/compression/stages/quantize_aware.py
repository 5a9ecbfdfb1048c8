"""Training with the integers that the file will compute with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from xnn_tf.compression.context import Context
from xnn_tf.compression.stages.base import Stage
from xnn_tf.quantization.quantize_aware import quantize_aware


@dataclass(frozen=True)
class QuantizeAware(Stage):
    """Puts the quantize-aware model in the model's place, and trains it. The file is int8 whatever the conversion says.

    It comes last: what earlier stages made is kept, and later levels cannot go on from its model.

    Attributes:
        settings: of `xnn_tf.quantize_aware`: {"weights": 4}.
        learning_rate: at the start; None takes the optimizer's usual one.
    """

    name: ClassVar[str] = "quantize-aware"
    share: float = 0.3
    settings: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float | None = None

    def run(self, context: Context) -> dict[str, Any]:
        with context.scope():
            context.model = quantize_aware(context.model, self.settings, calibration=context.train.first()[0])
        return context.fit([], learning_rate=self.learning_rate)

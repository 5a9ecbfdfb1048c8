"""The recipes that have names. Their numbers are measured by `benchmarks/compression.py`."""

from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune
from xnn_tf.compression.stages.sensitivity import MeasureSensitivity

INT8_ONLY = Recipe("int8-only", stages=(), conversions=(Conversion("int8"),))
"""No training: weights and activations as int8, calibrated on the training data."""

XQUEEZE = Recipe(
    "xqueeze",
    stages=(MeasureSensitivity(), Prune(rule="lamp", levels=64)),
    conversions=(Conversion("int8"), Conversion("int8-weights")),
    distill=(2.0, 0.7),
    first_ratio=16.0,
)
"""All steps, taught by the base model."""

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (XQUEEZE, INT8_ONLY)}

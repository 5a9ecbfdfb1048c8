"""The recipes that have names. Their numbers are measured by `benchmarks/compression.py`."""

from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.cluster import Cluster
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune
from xnn_tf.compression.stages.rate import RateTune
from xnn_tf.compression.stages.sensitivity import MeasureSensitivity

INT8_ONLY = Recipe("int8-only", stages=(), conversions=(Conversion("int8"),))
"""No training: weights and activations as int8, calibrated on the training data."""

DEEP_COMPRESSION = Recipe(
    "deep-compression",
    stages=(
        Prune(rule="std", iterations=3, levels=32, conv_levels=256),
        Cluster(clusters=31, conv_clusters=255, init="linear", end=0.0),
    ),
    conversions=(Conversion("none"),),
    first_ratio=20.0,
)
"""The three steps of Han, Mao and Dally (2016, arXiv:1510.00149), as the yardstick.

Magnitude pruning in rounds with retraining, by thresholds in standard deviations of each layer (Han et al. 2015); 5
bits for matrices and 8 for convolutions by k-means from linearly spaced values, which are then trained while weights
keep to theirs; entropy coding, by this project's coder instead of Huffman's. Trained on the data alone.
"""

XQUEEZE = Recipe(
    "xqueeze",
    stages=(MeasureSensitivity(), RateTune(levels=2, conv_levels=4, quantize_begin=0.4, quantize_end=0.7)),
    conversions=(Conversion("none", {"vector_bits": 8}),),
    distill=(2.0, 0.7),
    first_ratio=40.0,
)
"""Zeros and values chosen by the bytes that they take, while the base model teaches."""

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (XQUEEZE, DEEP_COMPRESSION, INT8_ONLY)}

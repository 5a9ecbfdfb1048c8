"""Compression while a Keras model trains: for Keras 3 on TensorFlow, and for tf_keras.

Importing it imports neither TensorFlow nor any Keras.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xnn_tf.channels import channel_groups
from xnn_tf.cluster_callback import ClusterCallback
from xnn_tf.distillation import DistillCallback
from xnn_tf.neuron_prune_callback import NeuronPruneCallback
from xnn_tf.prune_callback import PruneCallback
from xnn_tf.quantization import QuantizationRecipe, QuantizeWrapper, integer_forward, quantize_aware
from xnn_tf.rate_callback import RateCallback
from xnn_tf.sensitivity import Sensitivity, SensitivityCurve, sensitivity
from xnn_tf.shrink import shrink
from xnn_tf.sparsity_table import SparsityRow, SparsityTable, sparsity

if TYPE_CHECKING:
    from xnn_tf.compression.compress import Compressed, compress
    from xnn_tf.compression.recipe import Recipe
    from xnn_tf.compression.search import Search

_LAZY = {"Compressed": "compress", "Recipe": "recipe", "Search": "search", "compress": "compress"}
"""What imports the converter and the engine, when it is asked for; and its module in `xnn_tf.compression`."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"xnn_tf.compression.{_LAZY[name]}"), name)


__all__ = [
    "ClusterCallback",
    "Compressed",
    "DistillCallback",
    "NeuronPruneCallback",
    "PruneCallback",
    "QuantizationRecipe",
    "QuantizeWrapper",
    "RateCallback",
    "Recipe",
    "Search",
    "Sensitivity",
    "SensitivityCurve",
    "SparsityRow",
    "SparsityTable",
    "channel_groups",
    "compress",
    "integer_forward",
    "quantize_aware",
    "sensitivity",
    "shrink",
    "sparsity",
]

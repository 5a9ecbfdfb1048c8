"""Compression while a Keras model trains: for Keras 3 on TensorFlow, and for tf_keras.

Importing it imports neither TensorFlow nor any Keras.
"""

from xnn_tf.distillation import DistillCallback
from xnn_tf.prune_callback import PruneCallback
from xnn_tf.sparsity_table import SparsityRow, SparsityTable, sparsity

__all__ = ["DistillCallback", "PruneCallback", "SparsityRow", "SparsityTable", "sparsity"]

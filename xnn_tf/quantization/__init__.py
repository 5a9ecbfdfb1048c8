"""Quantization-aware training: layers that compute as the integers of their file do.

Importing it imports neither TensorFlow nor any Keras.
"""

from __future__ import annotations

from typing import Any

from xnn_tf.quantization.integer_forward import integer_forward
from xnn_tf.quantization.layers import register_layers
from xnn_tf.quantization.quantize_aware import quantize_aware
from xnn_tf.quantization.settings import QuantizationRecipe, Settings
from xnn_tf.quantization.strategy import Strategy, register_strategy
from xnn_tf.quantization.wrapper import wrapper_of

__all__ = [
    "QuantizationRecipe",
    "QuantizeWrapper",
    "Settings",
    "Strategy",
    "integer_forward",
    "quantize_aware",
    "register_layers",
    "register_strategy",
]

register_layers()


def QuantizeWrapper(layer: Any, strategy: Strategy | None = None, **arguments: Any) -> Any:
    """A layer that quantizes a layer, of the same Keras: what quantize_aware puts into models.

    strategy: what it does; by default what its class of layers has. Inputs that no quantized layer made are rounded
    first, with a range of this wrapper's.
    """
    return wrapper_of(layer, strategy, **arguments)

"""Activation functions: which the converter fuses into the layer before, and which have a range of their own."""

from __future__ import annotations

from typing import Any

from xnn_tf.quantization.ranges import FixedRange

FUSED = frozenset({"linear", "relu", "relu6"})
FIXED = {"sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0)}
"""Results of the 8-bit specification: 256 steps from the first to the second, the last step left out."""


def function_name(function: Any) -> str:
    """Keras's name of an activation function, "linear" for None."""
    if function is None:
        return "linear"
    return getattr(function, "__name__", type(function).__name__)


def name_of_layer(layer: Any) -> str | None:
    """The function of a layer that does nothing else, None for layers with parameters that the function has not."""
    kind = type(layer).__name__
    if kind == "Activation":
        return function_name(layer.activation)
    if kind == "Softmax":
        return "softmax" if layer.axis == -1 else None
    if kind == "ReLU" and not layer.negative_slope and not layer.threshold:
        return "relu"  # up to max_value, which fuses as well
    return None


def range_of_function(name: str | None, bits: int) -> FixedRange | None:
    """The range that the specification gives the function's results, None where the data does."""
    return FixedRange(*FIXED[name], bits) if name in FIXED else None

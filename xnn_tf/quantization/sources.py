"""Where a symbolic tensor was rounded: through layers that only move numbers, to the wrapper that made them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOVING = frozenset(
    """Reshape Flatten Permute RepeatVector Identity ZeroPadding1D ZeroPadding2D ZeroPadding3D Cropping1D Cropping2D
    Cropping3D UpSampling1D UpSampling3D MaxPooling1D MaxPooling2D MaxPooling3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D Dropout SpatialDropout1D SpatialDropout2D SpatialDropout3D GaussianDropout GaussianNoise
    AlphaDropout ActivityRegularization""".split()
)
"""Layers whose results, in inference, are some of the numbers that they get: their scale is that of the input."""


def moves_only(layer: Any) -> bool:
    """Whether a layer's results have the scale of its input."""
    name = type(layer).__name__
    return name in MOVING or (name == "UpSampling2D" and layer.interpolation == "nearest")


def source_of(tensor: Any) -> Any:
    """The range of a symbolic tensor, None where no quantized layer made it."""
    history = getattr(tensor, "_keras_history", None)
    if history is None:
        return None
    layer = history[0]
    if hasattr(layer, "output_source"):
        return layer.output_source
    if not moves_only(layer):
        return None
    before = list(_inputs(layer, history[1]))
    return source_of(before[0]) if len(before) == 1 else None


def _inputs(layer: Any, index: int) -> Iterator[Any]:
    node = layer._inbound_nodes[index]
    tensors = getattr(node, "input_tensors", None)
    if hasattr(node, "keras_inputs"):
        tensors = node.keras_inputs
    yield from (tensors if isinstance(tensors, (list, tuple)) else [tensors])

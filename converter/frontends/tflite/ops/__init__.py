"""How each operator is read: `READERS["CONV_2D"]` emits the schema nodes that compute its outputs."""

from converter.frontends.tflite.ops import (  # noqa: F401  (each registers its readers)
    arithmetic,
    detection,
    linear,
    pooling,
    quantization,
    recurrent,
    reductions,
    reshaping,
    same,
    selection,
)
from converter.frontends.tflite.reading import READERS

__all__ = ["READERS"]

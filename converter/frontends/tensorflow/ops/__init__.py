"""How each TensorFlow op is read: `READERS["Conv2D"](reading)` emits schema nodes and returns the op's outputs."""

from converter.frontends.tensorflow.ops import (  # noqa: F401  (each registers its readers)
    activations,
    convolutions,
    elementwise,
    fake_quantization,
    matrices,
    movement,
    normalization,
    pooling,
    reductions,
    resizing,
    shapes,
    slices,
    tensor_lists,
    values,
)
from converter.frontends.tensorflow.ops.reading import READERS

__all__ = ["READERS"]

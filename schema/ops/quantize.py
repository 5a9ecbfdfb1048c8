"""QUANTIZE: real numbers or integers of another scale -> integers of the output's scale and zero point.

From floats: round(x / scale) + zero_point, ties away from zero, saturated (TFLite AffineQuantize), per channel where
the output is. From integers: (x - zero_point) * (scale_in / scale_out) by the double-rounding multiplier
(tensorflow/lite/kernels/internal/reference/requantize.h).
"""

from __future__ import annotations

import numpy as np

from schema.errors import UnsupportedError
from schema.fixedpoint import multiply_by_real, quantize, saturate
from schema.graph import TensorType
from schema.ops.attributes import DTypeAttributes
from schema.ops.base import Op
from schema.ops.dtypes import AFFINE, per_tensor, quantized, require_dtype

FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)


class Quantize(Op):
    name = "QUANTIZE"
    Attributes = DTypeAttributes

    @classmethod
    def check(cls, attributes):
        if attributes.dtype not in AFFINE | {INT32}:
            raise UnsupportedError(f"quantization to {attributes.dtype}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], {FLOAT32, INT32} | AFFINE)
        return [TensorType(inputs[0].shape, attributes.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, output = arrays[0], outputs[0]
        if x.dtype == np.float32:
            return [quantize(x, quantized(cls.name, "output", output), output.dtype)]
        return [requantize(x, inputs[0], output)]


def requantize(x: np.ndarray, source: TensorType, target: TensorType) -> np.ndarray:
    """Integers of the source's scale and zero point -> those of the target's."""
    scale_in, zero_in = per_tensor("QUANTIZE", "input", source)
    scale_out, zero_out = per_tensor("QUANTIZE", "output", target)
    scaled = multiply_by_real(x.astype(np.int64) - zero_in, float(scale_in) / float(scale_out))
    return saturate(scaled + zero_out, target.dtype).astype(target.dtype)

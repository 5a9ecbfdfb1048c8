"""DEQUANTIZE: integers -> scale * (x - zero_point) as float32, per channel where x is; float16 -> float32 as it is."""

from __future__ import annotations

import numpy as np

from schema.fixedpoint import dequantize
from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.dtypes import AFFINE, quantized, require_dtype

FLOAT16 = np.dtype(np.float16)
INT32 = np.dtype(np.int32)


class Dequantize(Op):
    name = "DEQUANTIZE"

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], AFFINE | {FLOAT16, INT32})
        return [TensorType(inputs[0].shape, np.dtype(np.float32))]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        if arrays[0].dtype == np.float16:
            return [arrays[0].astype(np.float32)]
        return [dequantize(arrays[0], quantized(cls.name, "input", inputs[0]))]

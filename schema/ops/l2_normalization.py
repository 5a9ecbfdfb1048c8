"""L2_NORMALIZATION: x / max(|x|, 1e-6) along the last axis (reference/l2normalization.h).

The int8 output has scale 1/128 and zero point 0.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, require_dtype


class L2Normalization(Op):
    name = "L2_NORMALIZATION"

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, FLOATS)
        require(x.rank != 0, "the input is a scalar")
        return [TensorType(x.shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        norm = np.sqrt(np.sum(np.square(x, dtype=np.float64), axis=-1, keepdims=True))
        return [(x / np.maximum(norm, 1e-6)).astype(x.dtype)]

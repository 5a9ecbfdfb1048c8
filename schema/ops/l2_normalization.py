"""L2_NORMALIZATION: x / max(|x|, 1e-6) along the last axis (TFLite reference/l2normalization.h).

int8: the output has scale 1/128 and zero point 0; the norm's inverse is fixed-point (integer_ops/l2normalization.h).
uint8 (legacy): zero point 128, and the last 7 bits are multiplied in before rounding (reference/l2normalization.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, LEGACY, QUANTIZED, per_tensor, require_dtype, require_output
from schema.ops.fixed_point_functions import inverse_sqrt


class L2Normalization(Op):
    name = "L2_NORMALIZATION"

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, FLOATS | QUANTIZED | LEGACY)
        require(x.rank != 0, "the input is a scalar")
        return [TensorType(x.shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        if x.dtype.kind in "iu":
            middle = 128 if x.dtype in LEGACY else 0
            require_output(cls.name, outputs[0], 1 / 128, middle)
            _, zero_point = per_tensor(cls.name, "input", inputs[0])
            centred = x.astype(np.int64) - zero_point
            q31, shift = inverse_sqrt(np.sum(centred * centred, axis=-1, keepdims=True))
            if x.dtype in LEGACY:
                result = fixedpoint.multiply_by_quantized_multiplier(centred << 7, q31, shift) + middle
            else:
                result = fixedpoint.multiply_by_quantized_multiplier(centred, q31, shift + 7)
            return [fixedpoint.saturate(result, x.dtype).astype(x.dtype)]
        norm = np.sqrt(np.sum(np.square(x, dtype=np.float64), axis=-1, keepdims=True))
        return [(x / np.maximum(norm, 1e-6)).astype(x.dtype)]

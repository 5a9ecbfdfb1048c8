"""PADV2: (x, paddings int[rank, 2], value of one element) -> x with the value before and after each axis (tf.pad).

Quantized: the value is an integer of x's scale.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.dtypes import require_same_dtype
from schema.ops.operands import require_one_element
from schema.ops.padding import infer_padded, pad


class PadV2(Op):
    name = "PADV2"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, value = inputs[0], inputs[2]
        require_same_dtype(cls.name, x, value)
        require_one_element(value, "the value to pad with")
        return [TensorType(infer_padded(cls.name, inputs, values)[0], x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [pad(arrays[0], arrays[1], constant_values=np.ravel(arrays[2])[0])]

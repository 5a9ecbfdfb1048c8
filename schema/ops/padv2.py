"""PADV2: (x, paddings int[rank, 2], value of one element) -> x with the value before and after each axis (tf.pad).

Quantized: the value is an integer of x's scale.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.operands import check_same_dtype, product
from schema.ops.padding import infer_padded, pad_constant


class PadV2(Op):
    name = "PADV2"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x, value = inputs[0], inputs[2]
        check_same_dtype([x, value])
        require(value.shape is None or product(value.shape) in (1, None), f"the value to pad with is {value}")
        return [TensorType(infer_padded(inputs, values)[0], x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [pad_constant(arrays[0], arrays[1], np.ravel(arrays[2])[0])]

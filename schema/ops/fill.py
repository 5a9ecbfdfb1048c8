"""FILL: (dims int[r], value of one element) -> a tensor of that shape, full of the value (tf.fill)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.operands import check_dtype, integers, length, product, unknown


class Fill(Op):
    name = "FILL"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        value = inputs[1]
        check_dtype(value)
        require(value.shape is None or product(value.shape) in (1, None), f"the value to fill with is {value}")
        dims = integers(inputs, values, 0, "dims")
        if dims is None:
            return [TensorType(unknown(length(inputs[0], "dims")), value.dtype)]
        require(min(dims, default=0) >= 0, f"dims {dims} are negative")
        return [TensorType(tuple(dims), value.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.full([int(d) for d in np.ravel(arrays[0])], np.ravel(arrays[1])[0])]

"""FILL: (dims int[r], value of one element) -> a tensor of that shape, full of the value (tf.fill)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, require_one_element, unknown


class Fill(Op):
    name = "FILL"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        value = inputs[1]
        require_dtype(cls.name, "input", value, ANY)
        require_one_element(value, "the value to fill with")
        dims = integers(cls.name, inputs, values, 0, "dims")
        if dims is None:
            return [TensorType(unknown(length(inputs[0], "dims")), value.dtype)]
        require(min(dims, default=0) >= 0, f"dims {dims} are negative")
        return [TensorType(tuple(dims), value.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.full([int(d) for d in np.ravel(arrays[0])], np.ravel(arrays[1])[0])]

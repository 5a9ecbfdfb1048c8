"""SELECT_V2: (condition bool, a, b) -> a where the condition holds, b elsewhere, all three broadcast (tf.where)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.operands import check_dtype, check_same_dtype


class SelectV2(Op):
    name = "SELECT_V2"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        condition, a, b = inputs
        check_dtype(condition, [np.dtype(bool)], "the condition")
        check_dtype(a)
        check_same_dtype([a, b])
        return [TensorType(broadcast_shapes(condition.shape, a.shape, b.shape), a.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.where(*arrays)]

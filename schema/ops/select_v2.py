"""SELECT_V2: (condition bool, a, b) -> a where the condition holds, b elsewhere, all three broadcast (tf.where)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.broadcasting import broadcast_shapes
from schema.ops.dtypes import ANY, require_dtype, require_same_dtype


class SelectV2(Op):
    name = "SELECT_V2"
    inputs = (3, 3)

    @classmethod
    def infer(cls, attributes, inputs, values):
        condition, a, b = inputs
        require_dtype(cls.name, "the condition", condition, [np.dtype(bool)])
        require_dtype(cls.name, "input", a, ANY)
        require_same_dtype(cls.name, a, b)
        return [TensorType(broadcast_shapes(condition.shape, a.shape, b.shape), a.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.where(*arrays)]

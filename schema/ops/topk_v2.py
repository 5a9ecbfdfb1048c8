"""TOPK_V2: (x, k) -> the k largest along the last axis in descending order, and int32 where they were (tf.math.top_k).

Of equal numbers the one with the lower index comes first. NaN is larger than all others.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import AFFINE, FLOATS, INTEGERS, require_dtype
from schema.ops.operands import integer, unknown

INT32 = np.dtype(np.int32)


class TopK(Op):
    name = "TOPK_V2"
    inputs = (2, 2)
    outputs = 2

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, FLOATS | INTEGERS | AFFINE)
        require(x.rank != 0, "the input is a scalar")
        k = integer(cls.name, inputs, values, 1, "k")
        shape = unknown(x.rank)
        if x.shape is not None:
            require(k is None or k >= 0, f"k is {k}")
            require(None in (k, x.shape[-1]) or k <= x.shape[-1], f"k is {k}, of {x}")
            shape = (*x.shape[:-1], k)
        return [TensorType(shape, x.dtype), TensorType(shape, INT32)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, k = arrays[0], int(np.ravel(arrays[1])[0])
        # Ascending and stable from the back to the front, then turned round: descending, equal ones in order.
        order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        indices = x.shape[-1] - 1 - order[..., :k]
        return [np.take_along_axis(x, indices, -1), indices.astype(INT32)]

"""EXPAND_DIMS: (x, axis) -> x with an axis of 1 inserted there; -1 is after the last (tf.expand_dims)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integer, normalize_axis, unknown


class ExpandDims(Op):
    name = "EXPAND_DIMS"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        axis = integer(cls.name, inputs, values, 1, "the axis")
        if x.shape is None or axis is None:
            return [TensorType(unknown(None if x.rank is None else x.rank + 1), x.dtype)]
        axis = normalize_axis(axis, x.rank + 1)
        return [TensorType((*x.shape[:axis], 1, *x.shape[axis:]), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.expand_dims(arrays[0], int(np.ravel(arrays[1])[0]))]

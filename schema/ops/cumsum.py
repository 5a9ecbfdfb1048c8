"""CUMSUM: (x, axis) -> running sums along the axis.

exclusive leaves each element itself out, reverse runs from the end.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import CumsumAttributes
from schema.ops.base import Op
from schema.ops.dtypes import FLOATS, INTEGERS, require_dtype
from schema.ops.operands import normalize_axis
from schema.ops.reduction import infer_axis, wide


class Cumsum(Op):
    name = "CUMSUM"
    Attributes = CumsumAttributes
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], FLOATS | INTEGERS)
        infer_axis(cls.name, inputs[1], values[1], inputs[0].rank)
        return [TensorType(inputs[0].shape, inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        axis = normalize_axis(int(arrays[1].reshape(())), x.ndim)
        ordered = np.flip(x, axis) if attributes.reverse else x
        total = np.cumsum(ordered, axis=axis, dtype=wide(x))
        if attributes.exclusive:
            total = total - ordered
        return [np.ascontiguousarray(np.flip(total, axis) if attributes.reverse else total).astype(x.dtype)]

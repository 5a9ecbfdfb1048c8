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
        ordered = np.moveaxis(x, axis, -1)[..., :: -1 if attributes.reverse else 1]
        total = np.cumsum(ordered, axis=-1, dtype=wide(x))
        if attributes.exclusive:
            total = np.concatenate([np.zeros_like(total[..., :1]), total[..., :-1]], axis=-1)
        total = np.moveaxis(total[..., :: -1 if attributes.reverse else 1], -1, axis)
        return [np.ascontiguousarray(total.astype(x.dtype))]

"""ONE_HOT: (indices, depth, on, off) -> on where the index is, off elsewhere, along a new axis of `depth` (tf.one_hot).

axis -1 puts the new axis last. An index outside of [0, depth) is on nowhere.
"""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import AxisAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, INTEGERS, require_dtype, require_same_dtype
from schema.ops.operands import integer, normalize_axis, require_one_element


class OneHot(Op):
    name = "ONE_HOT"
    Attributes = AxisAttributes
    inputs = (4, 4)

    @classmethod
    def infer(cls, attributes, inputs, values):
        indices, _, on, off = inputs
        require_dtype(cls.name, "the tensor of indices", indices, INTEGERS | {np.dtype(np.uint8)})
        require_dtype(cls.name, "input", on, ANY)
        require_same_dtype(cls.name, on, off)
        for value in (on, off):
            require_one_element(value, "what stands for on or off")
        depth = integer(cls.name, inputs, values, 1, "depth")
        require(depth is None or depth >= 0, f"a depth of {depth}")
        if indices.shape is None:
            return [TensorType(None, on.dtype)]
        axis = normalize_axis(attributes.axis, indices.rank + 1)
        return [TensorType((*indices.shape[:axis], depth, *indices.shape[axis:]), on.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        indices, depth, on, off = arrays
        axis = normalize_axis(attributes.axis, indices.ndim + 1)
        positions = np.arange(int(np.ravel(depth)[0])).reshape(-1, *[1] * (indices.ndim - axis))
        hit = np.expand_dims(indices.astype(np.int64), axis) == positions
        return [np.where(hit, np.ravel(on)[0], np.ravel(off)[0])]

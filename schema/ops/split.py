"""SPLIT: (axis, x) -> `num` equal parts along the axis (tf.split with a number)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import SplitAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integer, normalize_axis, require_outputs, unknown


class Split(Op):
    name = "SPLIT"
    Attributes = SplitAttributes
    inputs = (2, 2)
    outputs = None

    @classmethod
    def check(cls, attributes):
        require_outputs(attributes.num)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[1]
        require_dtype(cls.name, "input", x, ANY)
        axis = integer(cls.name, inputs, values, 0, "the axis")
        shape = unknown(x.rank)
        if axis is not None and x.shape is not None:
            axis = normalize_axis(axis, x.rank)
            size = x.shape[axis]
            require(
                size is None or size % attributes.num == 0, f"axis {axis} of {x} does not split into {attributes.num}"
            )
            part = None if size is None else size // attributes.num
            shape = (*x.shape[:axis], part, *x.shape[axis + 1 :])
        return [TensorType(shape, x.dtype)] * attributes.num

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        parts = np.split(arrays[1], attributes.num, int(np.ravel(arrays[0])[0]))
        return [np.ascontiguousarray(part) for part in parts]

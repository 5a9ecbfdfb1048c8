"""UNPACK: x -> its `num` slices along an axis, which is dropped (tf.unstack)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import UnpackAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import normalize_axis, require_outputs


class Unpack(Op):
    name = "UNPACK"
    Attributes = UnpackAttributes
    outputs = None

    @classmethod
    def check(cls, attributes):
        require_outputs(attributes.num)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        shape = None
        if x.shape is not None:
            axis = normalize_axis(attributes.axis, x.rank)
            require(
                x.shape[axis] in (None, attributes.num), f"axis {axis} of {x} does not unpack into {attributes.num}"
            )
            shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return [TensorType(shape, x.dtype)] * attributes.num

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.array(part, order="C") for part in np.moveaxis(arrays[0], attributes.axis, 0)]

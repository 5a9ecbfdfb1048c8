"""REVERSE_V2: (x, axes int[n]) -> x with the order along those axes reversed (tf.reverse)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, normalize_axis


class ReverseV2(Op):
    name = "REVERSE_V2"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        axes = integers(cls.name, inputs, values, 1, "axes")
        if axes is not None and x.rank is not None:
            normalized = [normalize_axis(axis, x.rank) for axis in axes]
            require(len(set(normalized)) == len(axes), f"axes {axes} name one twice")
        return [TensorType(x.shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.array(np.flip(arrays[0], tuple(int(a) for a in np.ravel(arrays[1]))), order="C")]

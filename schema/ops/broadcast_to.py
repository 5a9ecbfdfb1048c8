"""BROADCAST_TO: (x, shape int[r]) -> x repeated along its axes of 1 and along new leading axes (tf.broadcast_to)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, unknown


class BroadcastTo(Op):
    name = "BROADCAST_TO"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        target = integers(cls.name, inputs, values, 1, "the shape")
        if target is None:
            return [TensorType(unknown(length(inputs[1], "the shape")), x.dtype)]
        require(min(target, default=0) >= 0, f"the shape {target} is negative")
        if x.shape is not None:
            require(x.rank <= len(target), f"{x} does not broadcast to {target}")
            tail = target[len(target) - x.rank :]
            fits = all(dim in (None, 1, size) for dim, size in zip(x.shape, tail, strict=True))
            require(fits, f"{x} does not broadcast to {target}")
        return [TensorType(tuple(target), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.broadcast_to(arrays[0], [int(d) for d in np.ravel(arrays[1])]).copy()]

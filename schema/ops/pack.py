"""PACK: (x, ...) of one shape -> stacked along a new axis (tf.stack)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import AxisAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype, require_same_dtype
from schema.ops.operands import merge, normalize_axis


class Pack(Op):
    name = "PACK"
    Attributes = AxisAttributes
    inputs = (1, None)

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], ANY)
        require_same_dtype(cls.name, *inputs)
        known = [x for x in inputs if x.shape is not None]
        if not known:
            return [TensorType(None, inputs[0].dtype)]
        shape = list(known[0].shape)
        for x in known[1:]:
            require(x.rank == len(shape), f"inputs {', '.join(map(str, known))} differ in rank")
            shape = [merge(a, b, f"sizes of axis {i}") for i, (a, b) in enumerate(zip(shape, x.shape, strict=True))]
        axis = normalize_axis(attributes.axis, len(shape) + 1)
        return [TensorType((*shape[:axis], len(inputs), *shape[axis:]), inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.stack(arrays, attributes.axis)]

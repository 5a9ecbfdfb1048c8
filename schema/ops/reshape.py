"""RESHAPE: (x, shape int[r]) -> the same elements in C order; one dim of -1 is what is left (tf.reshape)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import elements, integers, length, product, unknown


class Reshape(Op):
    name = "RESHAPE"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        target = integers(cls.name, inputs, values, 1, "the shape")
        if target is None:
            return [TensorType(unknown(length(inputs[1], "the shape")), x.dtype)]
        require(
            target.count(-1) <= 1 and min(target, default=0) >= -1,
            f"{target} is no shape: one -1 at most, the rest >= 0",
        )
        total = elements(x)
        rest = product(d for d in target if d != -1)
        if -1 not in target:
            require(total in (None, rest), f"{x} does not reshape to {target}")
            return [TensorType(tuple(target), x.dtype)]
        require(rest > 0, f"the -1 of {target} could be anything")
        require(total is None or total % rest == 0, f"{x} does not reshape to {target}")
        missing = None if total is None else total // rest
        return [TensorType(tuple(missing if d == -1 else d for d in target), x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.reshape(arrays[0], [int(d) for d in np.ravel(arrays[1])])]

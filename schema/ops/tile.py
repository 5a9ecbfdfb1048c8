"""TILE: (x, multiples int[rank]) -> x repeated that often along each axis (tf.tile)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op, require
from schema.ops.dtypes import ANY, require_dtype
from schema.ops.operands import integers, length, merge, unknown


class Tile(Op):
    name = "TILE"
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, ANY)
        multiples = integers(cls.name, inputs, values, 1, "multiples")
        rank = merge(x.rank, length(inputs[1], "multiples"), "ranks of x and multiples")
        require(multiples is None or min(multiples, default=0) >= 0, f"multiples {multiples} are negative")
        if multiples is None or x.shape is None:
            return [TensorType(unknown(rank), x.dtype)]
        return [
            TensorType(tuple(None if d is None else d * m for d, m in zip(x.shape, multiples, strict=True)), x.dtype)
        ]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.tile(arrays[0], [int(m) for m in np.ravel(arrays[1])])]

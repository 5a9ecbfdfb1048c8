"""RANK: x -> how many axes it has, an int32 scalar (tf.rank)."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.base import Op


class Rank(Op):
    name = "RANK"

    @classmethod
    def infer(cls, attributes, inputs, values):
        return [TensorType((), np.dtype(np.int32))]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.array(arrays[0].ndim, np.int32)]

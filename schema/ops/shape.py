"""SHAPE: x -> its shape, int32 or int64 (tf.shape)."""

from __future__ import annotations

import numpy as np

from schema.errors import UnsupportedError
from schema.graph import TensorType
from schema.ops.attributes import DTypeAttributes
from schema.ops.base import Op
from schema.ops.dtypes import INTEGERS


class Shape(Op):
    name = "SHAPE"
    Attributes = DTypeAttributes

    @classmethod
    def check(cls, attributes):
        if attributes.dtype not in INTEGERS:
            raise UnsupportedError(f"a shape as {attributes.dtype}, not int32 or int64")

    @classmethod
    def infer(cls, attributes, inputs, values):
        return [TensorType((inputs[0].rank,), attributes.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [np.array(arrays[0].shape, attributes.dtype)]

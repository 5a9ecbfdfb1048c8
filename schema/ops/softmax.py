"""SOFTMAX: exp(beta * x) over its sum along an axis. The int8 output has scale 1/256 and zero point -128."""

from __future__ import annotations

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import SoftmaxAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, require_dtype
from schema.ops.reduction import normalize_axis


class Softmax(Op):
    name = "SOFTMAX"
    Attributes = SoftmaxAttributes

    @classmethod
    def check(cls, attributes):
        require(np.isfinite(attributes.beta), f"beta {attributes.beta} is not a number")

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], FLOATS)
        if inputs[0].rank is not None:
            normalize_axis(attributes.axis, inputs[0].rank)
        return [TensorType(inputs[0].shape, inputs[0].dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x, axis = arrays[0], attributes.axis
        shifted = (x - x.max(axis=axis, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        exponentials = np.exp(shifted)
        total = exponentials.sum(axis=axis, keepdims=True, dtype=np.float64)
        return [(exponentials / total).astype(x.dtype)]

"""SOFTMAX: exp(beta * x) over its sum along an axis. The int8 output has scale 1/256 and zero point -128."""

from __future__ import annotations

import numpy as np

from schema.ops.normalization import AlongAxis


class Softmax(AlongAxis):
    name = "SOFTMAX"

    @classmethod
    def compute(cls, x, attributes):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        exponentials = np.exp(shifted)
        return exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float64)

"""LOG_SOFTMAX: the logarithm of SOFTMAX along an axis. The int8 output has scale 16/256 and zero point 127."""

from __future__ import annotations

import numpy as np

from schema.ops.normalization import AlongAxis


class LogSoftmax(AlongAxis):
    name = "LOG_SOFTMAX"

    @classmethod
    def compute(cls, x, attributes):
        shifted = (x - x.max(axis=-1, keepdims=True, initial=-np.inf)) * x.dtype.type(attributes.beta)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True, dtype=np.float64))

"""LOCAL_RESPONSE_NORMALIZATION: x / (bias + alpha * sum of squares) ** beta along the last axis, the sum being over the
channels at most `radius` away (Krizhevsky et al. 2012; tf.nn.local_response_normalization).
"""

from __future__ import annotations

import math

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import LocalResponseNormalizationAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import FLOATS, require_dtype


class LocalResponseNormalization(Op):
    name = "LOCAL_RESPONSE_NORMALIZATION"
    Attributes = LocalResponseNormalizationAttributes

    @classmethod
    def check(cls, attributes):
        require(attributes.radius >= 0, f"the radius is {attributes.radius}")
        for name in ("bias", "alpha", "beta"):
            value = getattr(attributes, name)
            require(math.isfinite(value), f"{name} is {value}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        x = inputs[0]
        require_dtype(cls.name, "input", x, FLOATS)
        require(x.rank != 0, "the input is a scalar")
        return [TensorType(x.shape, x.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        channels = x.shape[-1]
        squares = np.square(x.astype(np.float64))
        sums = squares.copy()
        for distance in range(1, min(attributes.radius, channels - 1) + 1):
            sums[..., distance:] += squares[..., :-distance]
            sums[..., :-distance] += squares[..., distance:]
        with np.errstate(all="ignore"):
            return [(x / (attributes.bias + attributes.alpha * sums) ** attributes.beta).astype(x.dtype)]

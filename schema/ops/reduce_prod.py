"""REDUCE_PROD: (x, axes) -> the product over the axes. Integers wrap around."""

from __future__ import annotations

import numpy as np

from schema.ops.reduction import Reduction, wide


class ReduceProd(Reduction):
    name = "REDUCE_PROD"

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return np.prod(x, axis=axes, keepdims=keep_dims, dtype=wide(x))

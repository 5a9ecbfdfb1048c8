"""SUM: (x, axes) -> the sum over the axes."""

from __future__ import annotations

import numpy as np

from schema.ops.reduction import Reduction, wide


class Sum(Reduction):
    name = "SUM"

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return np.sum(x, axis=axes, keepdims=keep_dims, dtype=wide(x))

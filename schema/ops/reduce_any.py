"""REDUCE_ANY: (bool x, axes) -> whether any is true over the axes."""

from __future__ import annotations

from schema.ops.dtypes import BOOL
from schema.ops.reduction import Reduction


class ReduceAny(Reduction):
    name = "REDUCE_ANY"
    dtypes = BOOL

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return x.any(axis=axes, keepdims=keep_dims)

"""REDUCE_ALL: (bool x, axes) -> whether all are true over the axes."""

from __future__ import annotations

from schema.ops.dtypes import BOOL
from schema.ops.reduction import Reduction


class ReduceAll(Reduction):
    name = "REDUCE_ALL"
    dtypes = BOOL

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return x.all(axis=axes, keepdims=keep_dims)

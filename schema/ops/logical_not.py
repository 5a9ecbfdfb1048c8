"""LOGICAL_NOT: not x."""

from __future__ import annotations

import numpy as np

from schema.ops.dtypes import BOOL
from schema.ops.elementwise import Unary


class LogicalNot(Unary):
    name = "LOGICAL_NOT"
    dtypes = BOOL

    @classmethod
    def compute(cls, x, attributes):
        return np.logical_not(x)

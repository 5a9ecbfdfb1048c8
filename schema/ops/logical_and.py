"""LOGICAL_AND: a and b, broadcasting. All are bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Logical


class LogicalAnd(Logical):
    name = "LOGICAL_AND"

    @classmethod
    def compute(cls, a, b):
        return np.logical_and(a, b)

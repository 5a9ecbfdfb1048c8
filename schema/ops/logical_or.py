"""LOGICAL_OR: a or b, broadcasting. All are bool."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Logical


class LogicalOr(Logical):
    name = "LOGICAL_OR"

    @classmethod
    def compute(cls, a, b):
        return np.logical_or(a, b)

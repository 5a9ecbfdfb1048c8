"""POW: a to the power b, broadcasting. Integers have no negative powers. int8: the nearest step (elementwise.py)."""

from __future__ import annotations

import numpy as np

from schema.errors import ExecutionError
from schema.ops.elementwise import RoundedBinary


class Pow(RoundedBinary):
    name = "POW"

    @classmethod
    def compute(cls, a, b):
        if a.dtype.kind != "f" and np.any(b < 0):
            raise ExecutionError("POW raises integers to a negative power")
        return np.power(a, b)

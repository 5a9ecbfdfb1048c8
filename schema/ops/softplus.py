"""SOFTPLUS: log(1 + exp(x))."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Softplus(Unary):
    name = "SOFTPLUS"

    @classmethod
    def compute(cls, x, attributes):
        return np.logaddexp(x, x.dtype.type(0))

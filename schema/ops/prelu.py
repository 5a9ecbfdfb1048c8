"""PRELU: (x, alpha) -> x above zero, else alpha * x; alpha broadcasts to x."""

from __future__ import annotations

import numpy as np

from schema.ops.base import require
from schema.ops.dtypes import FLOATS
from schema.ops.elementwise import Binary


class Prelu(Binary):
    name = "PRELU"
    dtypes = FLOATS

    @classmethod
    def infer(cls, attributes, inputs, values):
        result = super().infer(attributes, inputs, values)
        x, alpha = inputs
        if x.rank is not None and alpha.rank is not None:
            require(alpha.rank <= x.rank, f"slopes {alpha} do not broadcast to {x}")
            for have, want in zip(x.shape[::-1], alpha.shape[::-1], strict=False):
                require(want in (None, 1, have) or have is None, f"slopes {alpha} do not broadcast to {x}")
        return result

    @classmethod
    def compute(cls, a, b):
        return np.where(a >= 0, a, a * b)

"""LOG1P: log(1 + x), exact near zero."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Log1p(Unary):
    name = "LOG1P"

    @classmethod
    def compute(cls, x, attributes):
        return np.log1p(x)

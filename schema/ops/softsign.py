"""SOFTSIGN: x / (1 + |x|)."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary


class Softsign(Unary):
    name = "SOFTSIGN"

    @classmethod
    def compute(cls, x, attributes):
        return x / (1 + np.abs(x))

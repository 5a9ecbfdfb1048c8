"""SELU: scale * x above zero, else scale * alpha * (exp(x) - 1) (Klambauer et al. 2017)."""

from __future__ import annotations

import numpy as np

from schema.ops.elementwise import Unary

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805


class Selu(Unary):
    name = "SELU"

    @classmethod
    def compute(cls, x, attributes):
        kind = x.dtype.type
        return kind(SCALE) * np.where(x >= 0, x, np.expm1(x) * kind(ALPHA))

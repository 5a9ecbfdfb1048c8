"""CLAMP: x clamped to [min, max]."""

from __future__ import annotations

import numpy as np

from schema.ops.attributes import ClampAttributes
from schema.ops.elementwise import Unary


class Clamp(Unary):
    name = "CLAMP"
    Attributes = ClampAttributes

    @classmethod
    def compute(cls, x, attributes):
        return np.clip(x, attributes.min, attributes.max)

"""ARG_MIN: (x, axis) -> where the smallest number lies along the axis, the first of equal ones. The axis is gone."""

from __future__ import annotations

import numpy as np

from schema.ops.reduction import ArgReduction


class ArgMin(ArgReduction):
    name = "ARG_MIN"

    @classmethod
    def find(cls, x, axis):
        return np.argmin(x, axis=axis)

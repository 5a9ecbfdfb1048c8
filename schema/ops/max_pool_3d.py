"""MAX_POOL_3D: the largest of each window of x NDHWC."""

from __future__ import annotations

from schema.ops.attributes import Pool3DAttributes
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.pooling import MaxPool


class MaxPool3D(MaxPool):
    name = "MAX_POOL_3D"
    Attributes = Pool3DAttributes
    axes = "dhw"
    dtypes = FLOATS | QUANTIZED | WIDE

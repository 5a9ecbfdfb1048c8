"""AVERAGE_POOL_3D: the mean of each window of x NDHWC."""

from __future__ import annotations

from schema.ops.attributes import Pool3DAttributes
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.pooling import AveragePool


class AveragePool3D(AveragePool):
    name = "AVERAGE_POOL_3D"
    Attributes = Pool3DAttributes
    axes = "dhw"
    dtypes = FLOATS | QUANTIZED | WIDE

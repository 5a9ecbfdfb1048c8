"""AVERAGE_POOL_2D: the mean of each window of x NHWC."""

from __future__ import annotations

from schema.ops.attributes import Pool2DAttributes, check_activation
from schema.ops.dtypes import FLOATS, LEGACY, QUANTIZED, WIDE
from schema.ops.pooling import AveragePool


class AveragePool2D(AveragePool):
    name = "AVERAGE_POOL_2D"
    Attributes = Pool2DAttributes
    axes = "hw"
    dtypes = FLOATS | QUANTIZED | WIDE | LEGACY

    @classmethod
    def check(cls, attributes):
        super().check(attributes)
        check_activation(attributes)

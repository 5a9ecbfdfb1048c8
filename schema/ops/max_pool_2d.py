"""MAX_POOL_2D: the largest of each window of x NHWC."""

from __future__ import annotations

from schema.ops.attributes import Pool2DAttributes, check_activation
from schema.ops.dtypes import FLOATS, QUANTIZED, WIDE
from schema.ops.pooling import MaxPool


class MaxPool2D(MaxPool):
    name = "MAX_POOL_2D"
    Attributes = Pool2DAttributes
    axes = "hw"
    dtypes = FLOATS | QUANTIZED | WIDE

    @classmethod
    def check(cls, attributes):
        super().check(attributes)
        check_activation(attributes)

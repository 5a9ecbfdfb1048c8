"""SQUARED_DIFFERENCE: (a - b)^2, broadcasting.

int8: both are brought to a common scale with 7 more bits, subtracted, squared and scaled to the output
(TFLite kernels/squared_difference.cc).
"""

from __future__ import annotations

from schema.ops.common_scale import from_scale, to_common_scale
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Binary


class SquaredDifference(Binary):
    name = "SQUARED_DIFFERENCE"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, a, b):
        return (a - b) * (a - b)

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        a, b, scale = to_common_scale(cls.name, a, b, given, left_shift=7)
        return from_scale(cls.name, (a - b) * (a - b), scale * scale, output, (-128, 127))

"""SUB: a - b, broadcasting, with a fused activation.

int8: both are brought to a common scale, subtracted, and scaled to the output: three roundings (TFLite kernels/sub.cc).
"""

from __future__ import annotations

from schema import fixedpoint
from schema.ops.attributes import activation_range
from schema.ops.common_scale import from_scale, to_common_scale
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED
from schema.ops.elementwise import Arithmetic


class Sub(Arithmetic):
    name = "SUB"
    dtypes = FLOATS | INTEGERS | QUANTIZED

    @classmethod
    def compute(cls, a, b):
        return a - b

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        a, b, scale = to_common_scale(cls.name, a, b, given)
        bounds = fixedpoint.activation_bounds(*activation_range(attributes), output)
        return from_scale(cls.name, a - b, scale, output, bounds)

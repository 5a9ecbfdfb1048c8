"""SUB: a - b, broadcasting, with a fused activation.

int8: both are brought to a common scale, subtracted, and scaled to the output: three roundings (TFLite kernels/sub.cc).
int16: so too, but where all scales are powers of two and one operand has the output's, the other is shifted.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.attributes import activation_range
from schema.ops.common_scale import from_scale, powers_of_two, shift_right, to_common_scale
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE
from schema.ops.elementwise import Arithmetic


class Sub(Arithmetic):
    name = "SUB"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, a, b):
        return a - b

    @classmethod
    def quantized(cls, attributes, a, b, given, output):
        bounds = fixedpoint.activation_bounds(*activation_range(attributes), output)
        if (shifts := powers_of_two(cls.name, given, output)) is not None:
            a, b = shift_right(a, b, shifts)
            return np.clip(fixedpoint.saturate(a - b, output.dtype), *bounds).astype(output.dtype)
        a, b, scale = to_common_scale(cls.name, a, b, given)
        return from_scale(cls.name, a - b, scale, output, bounds)

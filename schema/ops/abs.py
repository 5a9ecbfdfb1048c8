"""ABS: |x|.

int8: |x - zero_point|, requantized where the scales differ (TFLite kernels/elementwise.cc).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Unary


class Abs(Unary):
    name = "ABS"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return np.abs(x)

    @classmethod
    def quantized(cls, x, attributes, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        size = np.abs(x.astype(np.int64) - zero_point)
        if scale != output_scale:
            size = fixedpoint.multiply_by_real(size, scale / output_scale)
        return fixedpoint.saturate(size + output_zero, x.dtype).astype(x.dtype)

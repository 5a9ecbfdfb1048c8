"""NEG: -x."""

from __future__ import annotations

from schema.ops.base import require
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE, per_tensor
from schema.ops.elementwise import Unary


class Neg(Unary):
    name = "NEG"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, attributes):
        return -x

    @classmethod
    def quantized(cls, x, attributes, given, output):
        if given.dtype in WIDE:
            (scale, _), (output_scale, _) = per_tensor(cls.name, "input", given), per_tensor(cls.name, "output", output)
            require(scale == output_scale, f"int16 of scale {scale} cannot become {output_scale}: requantize it first")
            return -x  # of the lowest number wraps around, as it does in TFLite
        return super().quantized(x, attributes, given, output)

"""REDUCE_PROD: (x, axes) -> the product over the axes. Integers wrap around.

int8: the factors x - zero_point are multiplied in C order, each time scaled by s_in / s_out^(1/n), so that the product
stays small (TFLite QuantizedReduceProd of reference/reduce.h).
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.dtypes import FLOATS, INTEGERS, QUANTIZED, WIDE, per_tensor
from schema.ops.reduction import Reduction, count, wide


class ReduceProd(Reduction):
    name = "REDUCE_PROD"
    dtypes = FLOATS | INTEGERS | QUANTIZED | WIDE

    @classmethod
    def compute(cls, x, axes, keep_dims):
        return np.prod(x, axis=axes, keepdims=keep_dims, dtype=wide(x))

    @classmethod
    def quantized(cls, x, axes, keep_dims, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        n = count(x, axes)
        q31, shift = fixedpoint.quantize_multiplier(float(scale) / float(output_scale) ** (1.0 / max(n, 1)))
        kept = tuple(i for i in range(x.ndim) if i not in axes)
        factors = x.transpose(*axes, *kept).reshape(n, *(x.shape[i] for i in kept)).astype(np.int64) - zero_point
        product = factors[0] if n else np.ones(factors.shape[1:], np.int64)
        for factor in factors[1:]:
            product = _scale(product * factor, q31, shift)
        result = fixedpoint.saturate(_scale(product, q31, shift) + output_zero, x.dtype).astype(x.dtype)
        return np.expand_dims(result, axes) if keep_dims else result


def _scale(x: np.ndarray, q31: int, shift: int) -> np.ndarray:
    return fixedpoint.wrap_int32(fixedpoint.multiply_wide_by_quantized_multiplier(x, q31, shift))

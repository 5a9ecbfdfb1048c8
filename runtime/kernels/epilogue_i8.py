"""The end of int8 sums of products: from accumulators to clamped int8, by the rule the block names. Imports numba."""

from __future__ import annotations

from numba import float32, float64

from runtime.kernels.abi import inline
from runtime.kernels.matmul_parameters import EXACT, FP32_ROUND_EVEN
from runtime.kernels.requantize import requantize_double_x16, requantize_even_x16, requantize_exact_x16
from runtime.simd.vector import F32x16, F64x16, I8x16, I32x16, convert, load, select, splat


@inline
def requantize_channels(p, acc, channel):
    """16 accumulators of the channels from `channel` on, as I8x16.

    p: view of a block with the slots rule, multipliers, shifts, zero_point, low and high.
    """
    zero_point, low, high = p.zero_point, p.low, p.high
    if p.rule == FP32_ROUND_EVEN:
        lowest, highest = splat(F32x16, float32(low - zero_point)), splat(F32x16, float32(high - zero_point))
        value = requantize_even_x16(acc, load(F32x16, p.multipliers + 4 * channel), lowest, highest)
    elif p.rule == EXACT:
        lowest, highest = splat(F64x16, float64(low - zero_point)), splat(F64x16, float64(high - zero_point))
        value = requantize_exact_x16(acc, load(F64x16, p.multipliers + 8 * channel), lowest, highest)
    else:
        at = 4 * channel
        value = requantize_double_x16(acc, load(I32x16, p.multipliers + at), load(I32x16, p.shifts + at))
    value += splat(I32x16, zero_point)
    value = select(value < splat(I32x16, low), splat(I32x16, low), value)
    return convert(I8x16, select(value > splat(I32x16, high), splat(I32x16, high), value))

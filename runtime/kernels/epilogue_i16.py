"""The end of sums of int16 times int8: from int64 accumulators to clamped int16, by the rule the block names. Imports
numba.
"""

from __future__ import annotations

from numba import float64

from runtime.kernels.abi import inline
from runtime.kernels.matmul_parameters import EXACT
from runtime.kernels.requantize import requantize_double_x16, requantize_exact_x16
from runtime.kernels.wide_parameters import EXACT_OF_INT32, WIDE
from runtime.simd.vector import F64x16, I16x16, I32x16, I64x16, convert, load, select, splat, zero


@inline
def requantize_wide_x16(p, acc, channel):
    """schema.fixedpoint.multiply_wide_by_quantized_multiplier, wrapped to I32x16."""
    at = 8 * channel
    product = acc * load(I64x16, p.multipliers + at) + load(I64x16, p.halves + at)
    return convert(I32x16, (product >> load(I64x16, p.rights + at)) << load(I64x16, p.lefts + at))


@inline
def requantize_exact_wide_x16(p, acc, channel):
    """In float64, rounded once, ties away from zero."""
    scaled = convert(F64x16, acc) * load(F64x16, p.multipliers + 8 * channel)
    low, high = splat(F64x16, float64(p.low)), splat(F64x16, float64(p.high))
    scaled = select(scaled < low, low, scaled)
    scaled = select(scaled > high, high, scaled)
    whole = convert(I32x16, scaled)
    rest = scaled - convert(F64x16, whole)
    half = splat(F64x16, 0.5)
    return whole + convert(I32x16, rest >= half) - convert(I32x16, rest <= zero(F64x16) - half)


@inline
def requantize_wide_channels(p, acc, channel):
    """16 int64 sums, bias included, of the channels from `channel` on, as I16x16."""
    if p.rule == WIDE:
        value = requantize_wide_x16(p, acc, channel)
    elif p.rule == EXACT:
        value = requantize_exact_wide_x16(p, acc, channel)
    elif p.rule == EXACT_OF_INT32:
        lowest, highest = splat(F64x16, float64(p.low)), splat(F64x16, float64(p.high))
        scale = load(F64x16, p.multipliers + 8 * channel)
        value = requantize_exact_x16(convert(I32x16, acc), scale, lowest, highest)
    else:
        at = 4 * channel
        multiplier, shift = load(I32x16, p.multipliers + at), load(I32x16, p.shifts + at)
        value = requantize_double_x16(convert(I32x16, acc), multiplier, shift)
    low, high = splat(I32x16, p.low), splat(I32x16, p.high)
    value = select(value < low, low, value)
    return convert(I16x16, select(value > high, high, value))

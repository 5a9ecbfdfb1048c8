"""Requantization of many channels at once, for accumulators that are known to be small enough. Imports numba.

What a channel needs is read from memory, made by runtime.lowering.lane_factors, which also tells where these rules may
be used.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import float32, int32, int64

from runtime.kernels.abi import inline
from runtime.kernels.matmul_parameters import DOUBLE_BY_FLOAT64, DOUBLE_BY_FLOAT64_POSITIVE, EXACT, FP32_ROUND_EVEN
from runtime.simd.lanes import low_halves, odd_elements, pack_bytes, pack_words
from runtime.simd.vector import F32x16, F64x16, I8x64, I32x16, I64x8, bitcast, convert, fma, load, select, splat

LINE = 64  # bytes of a vector

# Bytes of factors of 16 channels. Of TFLITE_DOUBLE: 16 int32 each of multipliers, addends (half of what the shift
# drops, and the zero point) and shifts to the right; 8 int64 each for the even and for the odd channels, bias *
# multiplier and the rounding of its high half, the odd ones doubled. Of FP32_ROUND_EVEN: 16 float32 multipliers, 16
# int32 of bias.
DOUBLE_FACTORS = 5 * LINE
EVEN_FACTORS = 2 * LINE
# Of DOUBLE_BY_FLOAT64, for sums that hold the bias: 16 float64 multipliers, 16 int32 each of addends and right shifts.
FLOAT64_FACTORS = 4 * LINE
# Of EXACT, for such sums too: 16 float64 multipliers.
EXACT_FACTORS = 2 * LINE

_ROUND = float32(12582912.0)  # 1.5 * 2**23: added to a smaller number, the sum's lowest bits are that number, rounded
_ROUND_BITS = 0x4B400000
_ROUND_64 = 6755399441055744.0  # 1.5 * 2**52, as much for float64: the lower half of the sum is an int32


@inline
def sign_extended(pairs):
    """The lower half of each int64, as int64."""
    return pairs << splat(I64x8, 32) >> splat(I64x8, 32)


@inline
def requantize_double_lanes(acc, at):
    """TFLITE_DOUBLE for 16 accumulators without bias, see DOUBLE_FACTORS."""
    a, m = bitcast(I64x8, acc), bitcast(I64x8, load(I32x16, at))
    even = sign_extended(a) * sign_extended(m) + load(I64x8, at + 3 * LINE)
    odd = sign_extended(bitcast(I64x8, odd_elements(acc))) * sign_extended(m >> splat(I64x8, 32))
    odd += odd + load(I64x8, at + 4 * LINE)
    low_half = splat(I64x8, 0xFFFFFFFF)
    doubled = ((even >> splat(I64x8, 31)) & low_half) | (odd & (low_half << splat(I64x8, 32)))
    high = bitcast(I32x16, doubled)
    high += (high >> splat(I32x16, 31)) + load(I32x16, at + LINE)
    return high >> load(I32x16, at + 2 * LINE)


@inline
def requantize_even_lanes(acc, at, zero_point):
    """FP32_ROUND_EVEN for 16 accumulators without bias, see EVEN_FACTORS."""
    rounded = convert(F32x16, acc + load(I32x16, at + LINE)) * load(F32x16, at) + splat(F32x16, _ROUND)
    return bitcast(I32x16, rounded) - splat(I32x16, _ROUND_BITS - zero_point)


def requantize_by_float64(is_positive):
    """Device function: DOUBLE_BY_FLOAT64 for 16 accumulators in memory, with bias, see FLOAT64_FACTORS."""

    @inline
    def run(sums, at):
        products = fma(convert(F64x16, load(I32x16, sums)), load(F64x16, at), splat(F64x16, _ROUND_64))
        high, addend = low_halves(products), load(I32x16, at + 2 * LINE)
        if not is_positive:
            addend += high >> splat(I32x16, 31)
        return (high + addend) >> load(I32x16, at + 3 * LINE)

    return run


by_float64, by_float64_positive = requantize_by_float64(False), requantize_by_float64(True)


@inline
def requantize_exact(sums, at, offset):
    """EXACT for 16 accumulators in memory, with bias, see EXACT_FACTORS. offset: F64x16, _ROUND_64 + the zero point."""
    return low_halves(fma(convert(F64x16, load(I32x16, sums)), load(F64x16, at), offset))


class Scaling(NamedTuple):
    """What all channels have in common, read from a block once: stores to the output could change the block."""

    rule: int
    zero_point: int
    low: int
    high: int


@inline
def scaling_of(p):
    return Scaling(p.rule, p.zero_point, p.low, p.high)


@inline
def clamp_bytes(p, value):
    """I8x64 within the block's `low` and `high`."""
    low, high = splat(I8x64, p.low), splat(I8x64, p.high)
    value = select(value < low, low, value)
    return select(value > high, high, value)


@inline
def requantize_lanes(p, a, b, c, d, at_a, at_b, at_c, at_d):
    """I8x64 from four I32x16, in the order of runtime.simd.lanes. p: Scaling or a block.

    at_...: addresses of the factors of each vector.
    """
    if p.rule == FP32_ROUND_EVEN:
        zero_point = int32(p.zero_point)
        words = pack_words(requantize_even_lanes(a, at_a, zero_point), requantize_even_lanes(b, at_b, zero_point))
        more = pack_words(requantize_even_lanes(c, at_c, zero_point), requantize_even_lanes(d, at_d, zero_point))
        value = pack_bytes(words, more)
    else:
        words = pack_words(requantize_double_lanes(a, at_a), requantize_double_lanes(b, at_b))
        more = pack_words(requantize_double_lanes(c, at_c), requantize_double_lanes(d, at_d))
        value = pack_bytes(words, more)
    return clamp_bytes(p, value)


@inline
def requantize_sums(p, a, b, c, d, at_a, at_b, at_c, at_d):
    """As requantize_lanes, from the addresses of accumulators; by the rules for those that hold the bias as well."""
    if p.rule == DOUBLE_BY_FLOAT64:
        words = pack_words(by_float64(a, at_a), by_float64(b, at_b))
        return clamp_bytes(p, pack_bytes(words, pack_words(by_float64(c, at_c), by_float64(d, at_d))))
    if p.rule == DOUBLE_BY_FLOAT64_POSITIVE:
        words = pack_words(by_float64_positive(a, at_a), by_float64_positive(b, at_b))
        more = pack_words(by_float64_positive(c, at_c), by_float64_positive(d, at_d))
        return clamp_bytes(p, pack_bytes(words, more))
    if p.rule == EXACT:
        offset = splat(F64x16, _ROUND_64 + p.zero_point)
        words = pack_words(requantize_exact(a, at_a, offset), requantize_exact(b, at_b, offset))
        more = pack_words(requantize_exact(c, at_c, offset), requantize_exact(d, at_d, offset))
        return clamp_bytes(p, pack_bytes(words, more))
    return requantize_lanes(
        p, load(I32x16, a), load(I32x16, b), load(I32x16, c), load(I32x16, d), at_a, at_b, at_c, at_d
    )


@inline
def requantize_rows(p, first, second, factors, vector_bytes):
    """I8x64 from the addresses of 32 accumulators of two rows: the first in even halves of lanes, the second in odd."""
    more = factors + vector_bytes
    return requantize_sums(p, first, first + LINE, second, second + LINE, factors, more, factors, more)


@inline
def factor_bytes(p):
    """How many bytes of factors each vector of 16 channels has."""
    if p.rule == DOUBLE_BY_FLOAT64 or p.rule == DOUBLE_BY_FLOAT64_POSITIVE:
        return int64(FLOAT64_FACTORS)
    if p.rule == EXACT:
        return int64(EXACT_FACTORS)
    return int64(EVEN_FACTORS) if p.rule == FP32_ROUND_EVEN else int64(DOUBLE_FACTORS)

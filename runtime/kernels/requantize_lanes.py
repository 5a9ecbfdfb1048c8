"""Requantization of many channels at once, for accumulators that are known to be small enough. Imports numba.

What a channel needs lies beside it in memory: see runtime.lowering.lane_factors, which also tells where these rules
may be used. Results have the zero point and are not clamped yet.
"""

from __future__ import annotations

from numba import float32, int32, int64

from runtime.kernels.abi import inline
from runtime.kernels.matmul_parameters import FP32_ROUND_EVEN
from runtime.simd.lanes import pack_bytes, pack_words
from runtime.simd.vector import F32x16, I8x64, I32x16, I64x8, bitcast, convert, load, select, splat

LINE = 64  # bytes of a vector
_ROUND = float32(12582912.0)  # 1.5 * 2**23: added to a smaller number, the sum's lowest bits are that number, rounded
_ROUND_BITS = 0x4B400000


@inline
def sign_extended(pairs):
    """The lower half of each int64, as int64."""
    return pairs << splat(I64x8, 32) >> splat(I64x8, 32)


@inline
def requantize_double_lanes(acc, at):
    """TFLITE_DOUBLE for 16 accumulators. at: 16 int32 each of multipliers, addends and shifts to the right.

    An addend is half of what the shift drops, and the zero point.
    """
    a, m = bitcast(I64x8, acc), bitcast(I64x8, load(I32x16, at))
    nudge = splat(I64x8, 1 << 30)
    even = sign_extended(a) * sign_extended(m) + nudge
    odd = sign_extended(a >> splat(I64x8, 32)) * sign_extended(m >> splat(I64x8, 32)) + nudge
    low_half = splat(I64x8, 0xFFFFFFFF)
    doubled = ((even >> splat(I64x8, 31)) & low_half) | ((odd << splat(I64x8, 1)) & (low_half << splat(I64x8, 32)))
    high = bitcast(I32x16, doubled)
    high += (high >> splat(I32x16, 31)) + load(I32x16, at + LINE)
    return high >> load(I32x16, at + 2 * LINE)


@inline
def requantize_even_lanes(acc, at, zero_point):
    """FP32_ROUND_EVEN for 16 accumulators. at: 16 float32 multipliers."""
    rounded = convert(F32x16, acc) * load(F32x16, at) + splat(F32x16, _ROUND)
    return bitcast(I32x16, rounded) - splat(I32x16, _ROUND_BITS - zero_point)


@inline
def clamp_bytes(p, value):
    """I8x64 within the block's `low` and `high`."""
    low, high = splat(I8x64, p.low), splat(I8x64, p.high)
    value = select(value < low, low, value)
    return select(value > high, high, value)


@inline
def requantize_lanes(p, a, b, c, d, at_a, at_b, at_c, at_d):
    """I8x64 from four I32x16, in the order of runtime.simd.lanes. p: block with rule, zero_point, low and high.

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
def factor_bytes(p):
    """How many bytes of factors each vector of 16 channels has."""
    return int64(LINE) if p.rule == FP32_ROUND_EVEN else int64(3 * LINE)

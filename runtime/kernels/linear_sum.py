"""Sums of int8 numbers as float32 functions that are proven to give the op's result. Imports numba.

What they need is read from memory: see runtime.lowering.linear_pair.LinearSum, of which nothing has to be checked here.
"""

from __future__ import annotations

from numba import float32

from runtime.kernels.abi import inline
from runtime.simd.lanes import interleave_high, interleave_low, pack_bytes, pack_words
from runtime.simd.vector import (
    F32x16,
    I8x16,
    I8x64,
    I16x32,
    I32x16,
    bitcast,
    convert,
    fma,
    load,
    select,
    splat,
    zero,
)

LINE = 64  # bytes of a vector


_ROUND = float32(12582912.0)  # 1.5 * 2**23: added to a smaller number, the sum's lowest bits are that number, rounded
_ROUND_BITS = 0x4B400000


@inline
def rounded_sum(a, b, at):
    """I32x16 from two of them."""
    value = fma(convert(F32x16, b), load(F32x16, at + LINE), load(F32x16, at + 2 * LINE))
    value = fma(convert(F32x16, a), load(F32x16, at), value) + splat(F32x16, _ROUND)
    return bitcast(I32x16, value) - splat(I32x16, _ROUND_BITS)


@inline
def add_x16(a, b, at):
    """I8x16 from two of them; factors as they are."""
    value = rounded_sum(convert(I32x16, a), convert(I32x16, b), at)
    low, high = convert(I32x16, load(I8x16, at + 3 * LINE)), convert(I32x16, load(I8x16, at + 4 * LINE))
    value = select(value < low, low, value)
    return convert(I8x16, select(value > high, high, value))


@inline
def top_bytes(value):
    """Four I32x16 from I8x64, in the order of runtime.simd.lanes: each byte the top of an int32, zeros below."""
    none, nothing = zero(I8x64), zero(I16x32)
    low, high = bitcast(I16x32, interleave_low(none, value)), bitcast(I16x32, interleave_high(none, value))
    return (
        bitcast(I32x16, interleave_low(nothing, low)),
        bitcast(I32x16, interleave_high(nothing, low)),
        bitcast(I32x16, interleave_low(nothing, high)),
        bitcast(I32x16, interleave_high(nothing, high)),
    )


@inline
def add_x64(a, b, at):
    """I8x64 from two of them, of which each byte becomes the top of an int32; factors times TOP_BYTE."""
    a_0, a_1, a_2, a_3 = top_bytes(a)
    b_0, b_1, b_2, b_3 = top_bytes(b)
    words = pack_words(rounded_sum(a_0, b_0, at), rounded_sum(a_1, b_1, at))
    more = pack_words(rounded_sum(a_2, b_2, at), rounded_sum(a_3, b_3, at))
    value = pack_bytes(words, more)
    low, high = load(I8x64, at + 3 * LINE), load(I8x64, at + 4 * LINE)
    value = select(value < low, low, value)
    return select(value > high, high, value)

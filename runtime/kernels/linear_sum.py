"""Sums of int8 numbers as float32 functions that are proven to give the op's result. Imports numba.

What they need is read from memory: see runtime.lowering.linear_pair.LinearSum, of which nothing has to be checked here.
"""

from __future__ import annotations

from runtime.kernels.abi import inline
from runtime.simd.lanes import pack_bytes, pack_words, round_to_even, tops_0, tops_1, tops_2, tops_3
from runtime.simd.vector import F32x16, I8x64, convert, fma, load, select

LINE = 64  # bytes of a vector


@inline
def rounded_sum(a, b, at):
    """I32x16 from two of them."""
    value = fma(convert(F32x16, b), load(F32x16, at + LINE), load(F32x16, at + 2 * LINE))
    return round_to_even(fma(convert(F32x16, a), load(F32x16, at), value))


@inline
def add_x64(a, b, at):
    """I8x64 from two of them, of which each byte becomes the top of an int32."""
    words = pack_words(rounded_sum(tops_0(a), tops_0(b), at), rounded_sum(tops_1(a), tops_1(b), at))
    more = pack_words(rounded_sum(tops_2(a), tops_2(b), at), rounded_sum(tops_3(a), tops_3(b), at))
    value = pack_bytes(words, more)
    low, high = load(I8x64, at + 3 * LINE), load(I8x64, at + 4 * LINE)
    value = select(value < low, low, value)
    return select(value > high, high, value)

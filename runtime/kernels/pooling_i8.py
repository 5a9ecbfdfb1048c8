"""Largest integer and mean of windows in int8."""

from __future__ import annotations

from numba import int32

from runtime.kernels.abi import inline
from runtime.kernels.pooling_integers import integer_poolings
from runtime.simd.vector import I8x16, I8x64, load, select, splat, store


@inline
def lowest_wide():
    return splat(I8x64, -128)


@inline
def larger_wide(acc, address, count):
    x = load(I8x64, address)
    return select(acc > x, acc, x)


@inline
def write_largest_wide(p, acc, taps, target, count):
    low, high = splat(I8x64, int32(p.low)), splat(I8x64, int32(p.high))
    acc = select(acc < low, low, acc)
    store(target, select(acc > high, high, acc))


max_pool_i8, average_pool_i8 = integer_poolings(I8x16, -128, 64, (lowest_wide, larger_wide, write_largest_wide))

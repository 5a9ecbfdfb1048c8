"""Largest number and mean of windows in float32; NaN wins."""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import inline
from runtime.kernels.pooling import LANES, pool_kernel
from runtime.simd.vector import F32x16, F64x16, convert, load, load_first, select, splat, store, store_first, zero

LINE = 64  # bytes of a vector
LOWEST = float32(-float("inf"))


@inline
def take(address, count):
    return load(F32x16, address) if count >= LANES else load_first(F32x16, address, count)


@inline
def lowest():
    return splat(F32x16, LOWEST)


@inline
def larger(acc, address, count):
    x = take(address, count)
    best = select(acc >= x, acc, x)
    return select(acc == acc, best, acc)


@inline
def write(p, value, target, count):
    low, high = splat(F32x16, float32(p.low)), splat(F32x16, float32(p.high))
    value = select(value < low, low, value)
    value = select(value > high, high, value)
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


@inline
def write_largest(p, acc, taps, target, count):
    write(p, acc, target, count)


@inline
def no_sum():
    return zero(F64x16)


@inline
def add(acc, address, count):
    return acc + convert(F64x16, take(address, count))


@inline
def write_mean(p, acc, taps, target, count):
    write(p, convert(F32x16, acc / splat(F64x16, taps)), target, count)


@inline
def lowest_wide():
    return lowest(), lowest(), lowest(), lowest()


@inline
def larger_wide(acc, address, count):
    # Four at a time: each comparison waits for the one before it.
    a, b, c, d = acc
    return (
        larger(a, address, int64(LANES)),
        larger(b, address + LINE, int64(LANES)),
        larger(c, address + 2 * LINE, int64(LANES)),
        larger(d, address + 3 * LINE, int64(LANES)),
    )


@inline
def write_largest_wide(p, acc, taps, target, count):
    a, b, c, d = acc
    write(p, a, target, int64(LANES))
    write(p, b, target + LINE, int64(LANES))
    write(p, c, target + 2 * LINE, int64(LANES))
    write(p, d, target + 3 * LINE, int64(LANES))


max_pool_f32 = pool_kernel(4, lowest, larger, write_largest, 64, (lowest_wide, larger_wide, write_largest_wide))
average_pool_f32 = pool_kernel(4, no_sum, add, write_mean)

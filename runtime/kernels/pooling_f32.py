"""Largest number and mean of windows in float32; NaN wins."""

from __future__ import annotations

from numba import float32

from runtime.kernels.abi import inline
from runtime.kernels.pooling import LANES, pool_kernel
from runtime.simd.vector import F32x16, F64x16, convert, load, load_first, select, splat, store, store_first, zero

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


max_pool_f32 = pool_kernel(4, lowest, larger, write_largest)
average_pool_f32 = pool_kernel(4, no_sum, add, write_mean)

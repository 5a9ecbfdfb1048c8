"""Largest integer and mean of windows in int8; the mean rounds half away from zero (TFLite integer_ops/pooling.h)."""

from __future__ import annotations

from numba import int32

from runtime.kernels.abi import inline
from runtime.kernels.pooling import LANES, pool_kernel
from runtime.simd.vector import (
    F64x16,
    I8x16,
    I8x64,
    I32x16,
    convert,
    load,
    load_first,
    select,
    splat,
    store,
    store_first,
    zero,
)


@inline
def take(address, count):
    return load(I8x16, address) if count >= LANES else load_first(I8x16, address, count)


@inline
def write(p, value, target, count):
    low, high = splat(I32x16, int32(p.low)), splat(I32x16, int32(p.high))
    value = select(value < low, low, value)
    value = convert(I8x16, select(value > high, high, value))
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


@inline
def lowest():
    return splat(I8x16, -128)


@inline
def larger(acc, address, count):
    x = take(address, count)
    return select(acc > x, acc, x)


@inline
def write_largest(p, acc, taps, target, count):
    write(p, convert(I32x16, acc), target, count)


@inline
def no_sum():
    return zero(I32x16)


@inline
def add(acc, address, count):
    return acc + convert(I32x16, take(address, count))


@inline
def write_mean(p, acc, taps, target, count):
    # Integers below 2**53 divide exactly enough in float64: the quotient is never rounded up to a whole number.
    half = splat(I32x16, taps >> 1)
    shifted = select(acc > zero(I32x16), acc + half, acc - half)
    write(p, convert(I32x16, convert(F64x16, shifted) / splat(F64x16, taps)), target, count)


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


max_pool_i8 = pool_kernel(1, lowest, larger, write_largest, 64, (lowest_wide, larger_wide, write_largest_wide))
average_pool_i8 = pool_kernel(1, no_sum, add, write_mean)

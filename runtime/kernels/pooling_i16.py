"""Largest integer and mean of windows in int16; the mean rounds half away from zero, as in int8."""

from __future__ import annotations

from numba import int32

from runtime.kernels.abi import inline
from runtime.kernels.pooling import LANES, pool_kernel
from runtime.simd.vector import (
    F64x16,
    I16x16,
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
    return load(I16x16, address) if count >= LANES else load_first(I16x16, address, count)


@inline
def write(p, value, target, count):
    low, high = splat(I32x16, int32(p.low)), splat(I32x16, int32(p.high))
    value = select(value < low, low, value)
    value = convert(I16x16, select(value > high, high, value))
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


@inline
def lowest():
    return splat(I16x16, -32768)


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
    # As in int8: float64 divides integers below 2**53 exactly enough.
    half = splat(I32x16, taps >> 1)
    shifted = select(acc > zero(I32x16), acc + half, acc - half)
    write(p, convert(I32x16, convert(F64x16, shifted) / splat(F64x16, taps)), target, count)


max_pool_i16 = pool_kernel(2, lowest, larger, write_largest)
average_pool_i16 = pool_kernel(2, no_sum, add, write_mean)

"""What poolings of int8 and int16 share: the largest integer and the mean of windows. Imports numba.

The mean rounds half away from zero (TFLite integer_ops/pooling.h).
"""

from __future__ import annotations

from numba import int32

from runtime.kernels.abi import inline
from runtime.kernels.pooling import LANES, pool_kernel
from runtime.simd.vector import F64x16, I32x16, convert, load, load_first, select, splat, store, store_first, zero


def integer_poolings(kind, lowest_number, wide_lanes=0, wide=None):
    """(kernel of the largest, kernel of the mean) over POOL. kind: vector of 16 elements. wide_lanes, wide: as of
    runtime.kernels.pooling.pool_kernel, for the largest.
    """
    item_size = kind.bytes // LANES

    @inline
    def take(address, count):
        return load(kind, address) if count >= LANES else load_first(kind, address, count)

    @inline
    def write(p, value, target, count):
        low, high = splat(I32x16, int32(p.low)), splat(I32x16, int32(p.high))
        value = select(value < low, low, value)
        value = convert(kind, select(value > high, high, value))
        if count >= LANES:
            store(target, value)
        else:
            store_first(target, value, count)

    @inline
    def lowest():
        return splat(kind, lowest_number)

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

    largest = pool_kernel(item_size, lowest, larger, write_largest, wide_lanes, wide)
    return largest, pool_kernel(item_size, no_sum, add, write_mean)

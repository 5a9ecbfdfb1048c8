"""Softmax along the last axis. Imports numba."""

from __future__ import annotations

from numba import float32, int8, int32, int64

from runtime.kernels.abi import f32, i8, i32, inline, kernel, view
from runtime.kernels.maths import exp
from runtime.kernels.reduction import sum_run_f32
from runtime.kernels.softmax_parameters import SOFTMAX_F32, SOFTMAX_I8
from runtime.simd.vector import F32x16, largest_lane, load, select, splat

LANES = 16
LOWEST = float32(-float("inf"))


@inline
def largest_of_run(address, count):
    """The largest of consecutive float32, as if NaN were not there."""
    best = splat(F32x16, LOWEST)
    while count >= LANES:
        x = load(F32x16, address)
        best = select(x > best, x, best)
        address += 4 * LANES
        count -= LANES
    result = largest_lane(best)
    for i in range(count):
        x = f32(address)[i]
        result = x if x > result else result
    return result


@kernel
def softmax_f32(params, begin, end, scratch):
    p = view(SOFTMAX_F32, params)
    count, beta = p.count, float32(p.beta)
    for row in range(begin, end):
        source, target = f32(p.input + 4 * count * row), f32(p.output + 4 * count * row)
        largest = largest_of_run(p.input + 4 * count * row, count)
        for i in range(count):
            target[i] = exp((source[i] - largest) * beta)
        total = sum_run_f32(p.output + 4 * count * row, count)
        factor = float32(1.0 / total)
        for i in range(count):
            target[i] = target[i] * factor
    return 0


@inline
def multiply(a, b):
    """Doubling high multiply of fixed point numbers: int64 that hold int32 (gemmlowp)."""
    return (a * b + (int64(1) << 30)) >> 31


@inline
def divide_rounding(x, exponent):
    """x / 2**exponent, ties away from zero."""
    mask = (int64(1) << exponent) - 1
    threshold = (mask >> 1) + (int64(1) if x < 0 else int64(0))
    return (x >> exponent) + (int64(1) if (x & mask) > threshold else int64(0))


@inline
def saturated_times_4(x):
    x = x << 2
    x = int64(2147483647) if x > 2147483647 else x
    return int64(-2147483648) if x < -2147483648 else x


@inline
def reciprocal_of_one_plus(a):
    """1 / (1 + a) in Q0 for a in [0, 1] in Q0: schema.ops.fixed_point_functions."""
    half_denominator = (a + 2147483647 + 1) >> 1
    x = int64(1515870810) + multiply(half_denominator, int64(-1010580540))  # 48/17 - 32/17 d in Q2
    for _ in range(3):
        error = int64(536870912) - multiply(half_denominator, x)  # 1 in Q2
        x = int64(int32(x + saturated_times_4(multiply(x, error))))
    x = x << 1
    return int64(2147483647) if x > 2147483647 else x


@kernel
def softmax_i8(params, begin, end, scratch):
    """In fixed point as TFLite's reference/softmax.h: a table gives the exponentials."""
    p = view(SOFTMAX_I8, params)
    count = p.count
    exponentials, terms = i32(p.exponentials), i32(p.terms)
    for row in range(begin, end):
        source, target = i8(p.input + count * row), i8(p.output + count * row)
        largest = int64(-128)
        for i in range(count):
            largest = max(largest, int64(source[i]))
        total = int64(0)
        for i in range(count):
            total += int64(terms[largest - int64(source[i])])
        total = int64(int32(total))
        headroom = int64(0)
        while headroom < 32 and ((total << headroom) & 0x80000000) == 0:
            headroom += 1
        scale = reciprocal_of_one_plus(int64(int32((total << headroom) - (int64(1) << 31))))
        right = min(12 - headroom + 31 - 8, int64(31))
        for i in range(count):
            difference = largest - int64(source[i])
            value = divide_rounding(multiply(int64(exponentials[difference]), scale), right) - 128
            value = min(value, int64(127)) if difference < p.counted else int64(-128)
            target[i] = int8(value)
    return 0

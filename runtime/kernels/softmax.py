"""Softmax along the last axis, of all or of what a mask lets in. Imports numba."""

from __future__ import annotations

from numba import float32, int8, int32, int64

from runtime.kernels.abi import f32, i8, i32, inline, kernel, u8, view
from runtime.kernels.maths import exp
from runtime.kernels.reduction import sum_run_f32
from runtime.kernels.softmax_masks import lets_anything_in, mask_of_row
from runtime.kernels.softmax_parameters import MASKED_F32, MASKED_I8, SOFTMAX_F32, SOFTMAX_I8
from runtime.simd.vector import F32x16, I8x16, I32x16, convert, largest_lane, load, select, splat, zero

LANES = 16
LOWEST = float32(-float("inf"))
OUT = 256
"""The difference to the largest number that stands for what is not let in."""


@inline
def largest_of_run(address, mask, count):
    """The largest of consecutive float32 that are let in, as if NaN were not there."""
    every = mask == 0
    lowest = splat(F32x16, LOWEST)
    best = lowest
    while count >= LANES:
        x = load(F32x16, address)
        if not every:
            x = select(convert(I32x16, load(I8x16, mask)) > zero(I32x16), x, lowest)
            mask += LANES
        best = select(x > best, x, best)
        address += 4 * LANES
        count -= LANES
    result = largest_lane(best)
    for i in range(count):
        x = f32(address)[i]
        result = x if x > result and (every or u8(mask)[i] != 0) else result
    return result


@inline
def row_f32(p, row, mask):
    """mask: the address of its row, 0 where there is none, here and below."""
    count, beta = p.count, float32(p.beta)
    source, target = f32(p.input + 4 * count * row), f32(p.output + 4 * count * row)
    if mask != 0 and not lets_anything_in(mask, count):
        for i in range(count):
            target[i] = float32(1.0 / count)
        return
    largest = largest_of_run(p.input + 4 * count * row, mask, count)
    for i in range(count):
        exponential = exp((source[i] - largest) * beta)
        target[i] = exponential if mask == 0 or u8(mask)[i] != 0 else float32(0)
    total = sum_run_f32(p.output + 4 * count * row, count)
    factor = float32(1.0 / total)
    for i in range(count):
        target[i] = target[i] * factor


@kernel
def softmax_f32(params, begin, end, scratch):
    p = view(SOFTMAX_F32, params)
    for row in range(begin, end):
        row_f32(p, row, int64(0))
    return 0


@kernel
def masked_softmax_f32(params, begin, end, scratch):
    p = view(MASKED_F32, params)
    for row in range(begin, end):
        row_f32(p, row, mask_of_row(p, row))
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


@inline
def row_i8(p, row, mask):
    count, every = p.count, mask == 0
    exponentials, terms = i32(p.exponentials), i32(p.terms)
    source, target = i8(p.input + count * row), i8(p.output + count * row)
    equal = not every and not lets_anything_in(mask, count)
    largest = int64(-128)
    for i in range(count):
        x = int64(source[i]) if every or u8(mask)[i] != 0 else int64(-128)
        largest = max(largest, x)
    total = int64(0)
    for i in range(count):
        total += int64(terms[difference_i8(source, mask, i, largest, equal)])
    total = int64(int32(total))
    headroom = int64(0)
    while headroom < 32 and ((total << headroom) & 0x80000000) == 0:
        headroom += 1
    scale = reciprocal_of_one_plus(int64(int32((total << headroom) - (int64(1) << 31))))
    right = min(12 - headroom + 31 - 8, int64(31))
    for i in range(count):
        difference = difference_i8(source, mask, i, largest, equal)
        value = divide_rounding(multiply(int64(exponentials[difference]), scale), right) - 128
        value = min(value, int64(127)) if difference < p.counted else int64(-128)
        target[i] = int8(value)


@inline
def difference_i8(source, mask, i, largest, equal):
    """How far below the largest number one lies; equal: nothing is let in, so that all are."""
    difference = largest - int64(source[i]) if mask == 0 or u8(mask)[i] != 0 else int64(OUT)
    return int64(0) if equal else difference


@kernel
def softmax_i8(params, begin, end, scratch):
    """In fixed point as TFLite's reference/softmax.h: a table gives the exponentials."""
    p = view(SOFTMAX_I8, params)
    for row in range(begin, end):
        row_i8(p, row, int64(0))
    return 0


@kernel
def masked_softmax_i8(params, begin, end, scratch):
    p = view(MASKED_I8, params)
    for row in range(begin, end):
        row_i8(p, row, mask_of_row(p, row))
    return 0

"""Sums, means and extrema over axes. float32 sums are held in float64, as the references do. Imports numba."""

from __future__ import annotations

from numba import float32, int8, int16, int64

from runtime.kernels.abi import f32, f64, i8, i16, i64, inline, kernel, truncated_divide, view
from runtime.kernels.reduction_parameters import REDUCTION
from runtime.kernels.requantize import clamp, requantize_double
from runtime.simd.vector import (
    F32x16,
    F64x16,
    I8x16,
    I16x16,
    I32x16,
    I64x16,
    convert,
    load,
    load_first,
    store,
    sum_lanes,
    zero,
)

LANES = 16


@inline
def sum_run_f32(address, count):
    """The sum of consecutive float32, in float64."""
    total = zero(F64x16)
    while count >= LANES:
        total += convert(F64x16, load(F32x16, address))
        address += 4 * LANES
        count -= LANES
    return sum_lanes(total + convert(F64x16, load_first(F32x16, address, count)))


def sum_run_of_integers(kind, item_size):
    """Device function: the sum of consecutive integers, as many as a 32-bit sum holds."""

    @inline
    def run(address, count):
        total = zero(I32x16)
        while count >= LANES:
            total += convert(I32x16, load(kind, address))
            address += LANES * item_size
            count -= LANES
        return int64(sum_lanes(total + convert(I32x16, load_first(kind, address, count))))

    return run


def sum_kernel(item_size, pointer, wide_pointer, sum_run, sum_rows, finish):
    """A kernel over REDUCTION: sums in 8-byte numbers, `finish(p, total)` gives what is written."""

    @kernel
    def reduce(params, begin, end, scratch):
        p = view(REDUCTION, params)
        inner = p.inner
        totals = wide_pointer(scratch)
        for tile in range(begin, end):
            outer = truncated_divide(tile, p.chunks)
            first = (tile - outer * p.chunks) * p.chunk
            count = min(p.chunk, inner - first)
            source = p.input + (outer * p.reduced * inner + first) * item_size
            target = pointer(p.output + (outer * inner + first) * item_size)
            if inner == 1:
                target[0] = finish(p, sum_run(source, p.reduced))
                continue
            sum_rows(scratch, source, p.reduced, inner * item_size, count)
            for i in range(count):
                target[i] = finish(p, totals[i])
        return 0

    return reduce


def sum_rows(item_size, pointer, wide_pointer, wide, taken, kept):
    """Device function: the sums of `count` columns of `rows` rows, `stride` bytes apart, as 8-byte numbers to `totals`.

    taken: type of 16 elements; kept: of 16 sums, as `wide` in memory. Sums of 32 columns at once stay in registers.
    """

    @inline
    def columns(source):
        return convert(kept, load(taken, source))

    @inline
    def run(totals, source, rows, stride, count):
        i = int64(0)
        while i + 2 * LANES <= count:
            at = source + item_size * i
            a = b = zero(kept)
            for _ in range(rows):
                a += columns(at)
                b += columns(at + item_size * LANES)
                at += stride
            store(totals + 8 * i, convert(wide, a))
            store(totals + 8 * (i + LANES), convert(wide, b))
            i += 2 * LANES
        while i + LANES <= count:
            at = source + item_size * i
            a = zero(kept)
            for _ in range(rows):
                a += columns(at)
                at += stride
            store(totals + 8 * i, convert(wide, a))
            i += LANES
        for k in range(i, count):
            total = wide_pointer(totals + 8 * k)
            total[0] = 0
            for r in range(rows):
                total[0] += pointer(source + r * stride)[k]

    return run


sum_rows_f32 = sum_rows(4, f32, f64, F64x16, F32x16, F64x16)
sum_rows_i8 = sum_rows(1, i8, i64, I64x16, I8x16, I32x16)
sum_rows_i16 = sum_rows(2, i16, i64, I64x16, I16x16, I32x16)


@inline
def scaled(p, total):
    return float32(total * p.factor)


@inline
def requantized(p, total):
    return requantize_double(total + p.offset, p.multiplier, p.shift) + p.zero_point


@inline
def requantized_i8(p, total):
    return int8(clamp(requantized(p, total), int64(-128), int64(127)))


@inline
def requantized_i16(p, total):
    return int16(clamp(requantized(p, total), int64(-32768), int64(32767)))


sum_f32 = sum_kernel(4, f32, f64, sum_run_f32, sum_rows_f32, scaled)
sum_i8 = sum_kernel(1, i8, i64, sum_run_of_integers(I8x16, 1), sum_rows_i8, requantized_i8)
sum_i16 = sum_kernel(2, i16, i64, sum_run_of_integers(I16x16, 2), sum_rows_i16, requantized_i16)


def extremum_kernel(item_size, pointer, better):
    """A kernel over REDUCTION that keeps, of two numbers, b where `better(b, a)`."""

    @kernel
    def reduce(params, begin, end, scratch):
        p = view(REDUCTION, params)
        inner = p.inner
        for tile in range(begin, end):
            outer = truncated_divide(tile, p.chunks)
            first = (tile - outer * p.chunks) * p.chunk
            count = min(p.chunk, inner - first)
            source = p.input + (outer * p.reduced * inner + first) * item_size
            target = pointer(p.output + (outer * inner + first) * item_size)
            for i in range(count):
                target[i] = pointer(source)[i]
            for r in range(1, p.reduced):
                row = pointer(source + r * inner * item_size)
                for i in range(count):
                    a, b = target[i], row[i]
                    target[i] = b if better(b, a) else a
        return 0

    return reduce


# NaN is better than any number.
max_f32 = extremum_kernel(4, f32, inline(lambda b, a: b > a or b != b))
min_f32 = extremum_kernel(4, f32, inline(lambda b, a: b < a or b != b))
max_i8 = extremum_kernel(1, i8, inline(lambda b, a: b > a))
min_i8 = extremum_kernel(1, i8, inline(lambda b, a: b < a))
max_i16 = extremum_kernel(2, i16, inline(lambda b, a: b > a))
min_i16 = extremum_kernel(2, i16, inline(lambda b, a: b < a))

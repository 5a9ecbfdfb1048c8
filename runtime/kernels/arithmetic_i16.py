"""ADD, SUB, MUL, MAXIMUM and MINIMUM of int16 tensors with broadcasting, by the integer rules of schema.fixedpoint. A
tile is a chunk of one innermost run, as in float32.
"""

from __future__ import annotations

from numba import float32, int16, int64

from runtime.kernels.abi import i16, inline, kernel, truncated_divide, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.matmul_parameters import FP32_ROUND_EVEN
from runtime.kernels.requantize import clamp, requantize_double, requantize_double_x16
from runtime.kernels.wide_parameters import EXTREMUM_I16, PRODUCT_I16, SHIFTED_SUM_I16, SUM_I16
from runtime.simd.vector import I16x16, I32x16, convert, load, select, splat, store

_ROUND = float32(12582912.0)  # see runtime.kernels.requantize


LANES = 16


@inline
def _none_at_once(p, a, b, out, count):
    """How many elements at once are computed beforehand: none."""
    return int64(0)


def _binary(block, compute, at_once=_none_at_once):
    """A kernel for `compute(p, a, b)` of int64, giving int64 within the output's range.

    at_once(p, a, b, out, count): computes the first elements of runs that are not broadcast, from addresses to an
    address; gives how many.
    """

    @kernel
    def run(params, begin, end, scratch):
        p = view(block, params)
        inner, a_step, b_step, chunk = p.inner, p.a_step, p.b_step, p.chunk
        for tile in range(begin, end):
            row = truncated_divide(tile, p.chunks)
            start = (tile - row * p.chunks) * chunk
            count = min(chunk, inner - start)
            a_at = p.a + 2 * (offset_of(row, p.outer_rank, p.outer, p.a_strides) + start * a_step)
            b_at = p.b + 2 * (offset_of(row, p.outer_rank, p.outer, p.b_strides) + start * b_step)
            out_at = p.output + 2 * (row * inner + start)
            a, b, out = i16(a_at), i16(b_at), i16(out_at)
            first = int64(0)
            if a_step == 1 and b_step == 1:
                first = at_once(p, a_at, b_at, out_at, count)
            for i in range(first, count):
                out[i] = int16(compute(p, int64(a[a_step * i]), int64(b[b_step * i])))
        return 0

    return run


@inline
def _sum(p, a, b):
    a = requantize_double((a - p.a_zero) << p.left, p.a_multiplier, p.a_shift)
    b = requantize_double((b - p.b_zero) << p.left, p.b_multiplier, p.b_shift)
    total = requantize_double(a + p.sign * b, p.output_multiplier, p.output_shift) + p.output_zero
    return clamp(total, p.low, p.high)


@inline
def _scaled(address, zero_point, left, multiplier, shift):
    centred = convert(I32x16, load(I16x16, address)) - splat(I32x16, zero_point)
    return requantize_double_x16(centred << splat(I32x16, left), splat(I32x16, multiplier), splat(I32x16, shift))


@inline
def _sums_at_once(p, a, b, out, count):
    if p.output_zero != 0:  # with which sums may have more than 32 bits
        return int64(0)
    whole = count & -LANES
    low, high = splat(I32x16, p.low), splat(I32x16, p.high)
    for i in range(0, 2 * whole, 2 * LANES):
        first = _scaled(a + i, p.a_zero, p.left, p.a_multiplier, p.a_shift)
        second = _scaled(b + i, p.b_zero, p.left, p.b_multiplier, p.b_shift)
        total = first + splat(I32x16, p.sign) * second
        total = requantize_double_x16(total, splat(I32x16, p.output_multiplier), splat(I32x16, p.output_shift))
        total = select(total < low, low, total)
        store(out + i, convert(I16x16, select(total > high, high, total)))
    return whole


@inline
def _shifted(x, shift):
    """x / 2**shift to the nearest integer, ties away from zero."""
    mask = (int64(1) << shift) - 1
    threshold = (mask >> 1) + (int64(1) if x < 0 else int64(0))
    return (x >> shift) + (int64(1) if (x & mask) > threshold else int64(0))


@inline
def _shifted_sum(p, a, b):
    total = _shifted(a, p.a_shift) + p.sign * _shifted(b, p.b_shift)
    return clamp(clamp(total, int64(-32768), int64(32767)), p.low, p.high)


@inline
def _product(p, a, b):
    product = (a - p.a_zero) * (b - p.b_zero)
    if p.rule == FP32_ROUND_EVEN:
        scaled = float32(product) * float32(p.scale)
        scaled = clamp(scaled, float32(p.low - p.output_zero), float32(p.high - p.output_zero))
        return int64((scaled + _ROUND) - _ROUND) + p.output_zero
    return clamp(requantize_double(product, p.multiplier, p.shift) + p.output_zero, p.low, p.high)


sum_of_two_i16 = _binary(SUM_I16, _sum, _sums_at_once)
shifted_sum_i16 = _binary(SHIFTED_SUM_I16, _shifted_sum)
product_i16 = _binary(PRODUCT_I16, _product)
maximum_i16 = _binary(EXTREMUM_I16, inline(lambda p, a, b: max(a, b)))
minimum_i16 = _binary(EXTREMUM_I16, inline(lambda p, a, b: min(a, b)))

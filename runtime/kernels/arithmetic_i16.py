"""ADD, SUB, MUL, MAXIMUM and MINIMUM of int16 tensors with broadcasting, by the integer rules of schema.fixedpoint. A
tile is a chunk of one innermost run, as in float32.
"""

from __future__ import annotations

from numba import float32, int16, int64

from runtime.kernels.abi import i16, inline, kernel, truncated_divide, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.matmul_parameters import FP32_ROUND_EVEN
from runtime.kernels.requantize import clamp, requantize_double
from runtime.kernels.wide_parameters import EXTREMUM_I16, PRODUCT_I16, SHIFTED_SUM_I16, SUM_I16

_ROUND = float32(12582912.0)  # see runtime.kernels.requantize


def _binary(block, compute):
    """A kernel for `compute(p, a, b)` of int64, giving int64 within the output's range."""

    @kernel
    def run(params, begin, end, scratch):
        p = view(block, params)
        inner, a_step, b_step, chunk = p.inner, p.a_step, p.b_step, p.chunk
        for tile in range(begin, end):
            row = truncated_divide(tile, p.chunks)
            start = (tile - row * p.chunks) * chunk
            count = min(chunk, inner - start)
            a = i16(p.a + 2 * (offset_of(row, p.outer_rank, p.outer, p.a_strides) + start * a_step))
            b = i16(p.b + 2 * (offset_of(row, p.outer_rank, p.outer, p.b_strides) + start * b_step))
            out = i16(p.output + 2 * (row * inner + start))
            for i in range(count):
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


sum_i16 = _binary(SUM_I16, _sum)
shifted_sum_i16 = _binary(SHIFTED_SUM_I16, _shifted_sum)
product_i16 = _binary(PRODUCT_I16, _product)
maximum_i16 = _binary(EXTREMUM_I16, inline(lambda p, a, b: max(a, b)))
minimum_i16 = _binary(EXTREMUM_I16, inline(lambda p, a, b: min(a, b)))

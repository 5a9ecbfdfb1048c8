"""Sums of two int8 tensors in float32, where all results are known to be those of a table. Imports numba."""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import i8, inline, kernel, truncated_divide, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.elementwise_parameters import BINARY_LINEAR
from runtime.kernels.linear_sum import add_x64
from runtime.simd.vector import (
    F32x16,
    I8x16,
    I8x64,
    I32x16,
    absolute,
    any_lane,
    convert,
    fma,
    load,
    select,
    splat,
    store,
)

LANES = 16
BYTES = 64
_ROUND = float32(12582912.0)  # 1.5 * 2**23: adding and subtracting it rounds to the nearest integer


@inline
def numbers(address, step):
    """16 of them as float32."""
    if step == 0:
        return splat(F32x16, float32(i8(address)[0]))
    return convert(F32x16, convert(I32x16, load(I8x16, address)))


@inline
def look_up(p, a, b, target, count):
    """The results of `count` pairs."""
    table = i8(p.table + 257 * 128)
    first, second, out = i8(a), i8(b), i8(target)
    for i in range(count):
        out[i] = table[256 * int64(first[p.a_step * i]) + int64(second[p.b_step * i])]


@kernel
def linear_pair_i8(params, begin, end, scratch):
    """round(a * a_factor + b * b_factor + offset), clamped; from the table where that is within `margin` of a tie. With
    `sum`, 64 at a time without a look at that.
    """
    p = view(BINARY_LINEAR, params)
    inner, chunk = p.inner, p.chunk
    a_factor, b_factor = splat(F32x16, float32(p.a_factor)), splat(F32x16, float32(p.b_factor))
    offset, rounding = splat(F32x16, float32(p.offset)), splat(F32x16, _ROUND)
    sure = splat(F32x16, float32(0.5 - p.margin))
    low, high = splat(F32x16, float32(p.low)), splat(F32x16, float32(p.high))
    for tile in range(begin, end):
        row = truncated_divide(tile, p.chunks)
        start = (tile - row * p.chunks) * chunk
        count = min(chunk, inner - start)
        a = p.a + offset_of(row, p.outer_rank, p.outer, p.a_strides) + start * p.a_step
        b = p.b + offset_of(row, p.outer_rank, p.outer, p.b_strides) + start * p.b_step
        target = p.output + row * inner + start
        proven = int64(0)
        if p.sum != 0 and p.a_step == 1 and p.b_step == 1:
            proven = count & -BYTES
            for i in range(0, proven, BYTES):
                store(target + i, add_x64(load(I8x64, a + i), load(I8x64, b + i), p.sum))
        whole = count & -LANES
        for i in range(proven, whole, LANES):
            at_a, at_b = a + i * p.a_step, b + i * p.b_step
            value = fma(numbers(at_a, p.a_step), a_factor, fma(numbers(at_b, p.b_step), b_factor, offset))
            rounded = (value + rounding) - rounding
            if any_lane(absolute(value - rounded) > sure):
                look_up(p, at_a, at_b, target + i, int64(LANES))
            else:
                rounded = select(rounded < low, low, rounded)
                rounded = select(rounded > high, high, rounded)
                store(target + i, convert(I8x16, convert(I32x16, rounded)))
        look_up(p, a + whole * p.a_step, b + whole * p.b_step, target + whole, count - whole)
    return 0

"""Products of int16 rows with int8 weights: convolutions, transposed ones and dense layers, with exact sums."""

from __future__ import annotations

from numba import int32, int64

from runtime.kernels.abi import i16, inline, kernel, truncated_divide, u8, view
from runtime.kernels.epilogue_i16 import requantize_wide_channels
from runtime.kernels.matmul_parameters import ROWS_IN_MEMORY, ROWS_OF_WINDOWS
from runtime.kernels.wide_parameters import MATMUL_I16, RUN
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.vector import I8x16, I32x16, I64x16, convert, load, splat, store, store_first, zero

LANES = 16


@inline
def clear(target, size, padding):
    """Padding is zeros."""
    for i in range(size):
        u8(target)[i] = 0


gather_windows, gather_transposed_windows = window_gatherer(2, plain_copy, clear)


@inline
def finish(p, acc, bias, channel, target, count):
    value = requantize_wide_channels(p, acc + load(I64x16, bias), channel)
    if count >= LANES:
        store(target, value)
    else:
        store_first(target, value, count)


@inline
def weights_at(w, k):
    return convert(I32x16, load(I8x16, w + LANES * k))


@inline
def four_rows(p, a, stride, w, bias, channel, target, count):
    """Four rows, `stride` bytes apart, times a panel."""
    x0, x1, x2, x3 = i16(a), i16(a + stride), i16(a + 2 * stride), i16(a + 3 * stride)
    t0 = t1 = t2 = t3 = zero(I64x16)
    first = int64(0)
    while first < p.depth:
        end = min(first + RUN, p.depth)
        s0 = s1 = s2 = s3 = zero(I32x16)
        for k in range(first, end):
            b = weights_at(w, k)
            s0 += splat(I32x16, int32(x0[k])) * b
            s1 += splat(I32x16, int32(x1[k])) * b
            s2 += splat(I32x16, int32(x2[k])) * b
            s3 += splat(I32x16, int32(x3[k])) * b
        t0 += convert(I64x16, s0)
        t1 += convert(I64x16, s1)
        t2 += convert(I64x16, s2)
        t3 += convert(I64x16, s3)
        first = end
    step = p.output_stride
    finish(p, t0, bias, channel, target, count)
    finish(p, t1, bias, channel, target + step, count)
    finish(p, t2, bias, channel, target + 2 * step, count)
    finish(p, t3, bias, channel, target + 3 * step, count)


@inline
def one_row(p, a, w, bias, channel, target, count):
    x = i16(a)
    total = zero(I64x16)
    first = int64(0)
    while first < p.depth:
        end = min(first + RUN, p.depth)
        s = zero(I32x16)
        for k in range(first, end):
            s += splat(I32x16, int32(x[k])) * weights_at(w, k)
        total += convert(I64x16, s)
        first = end
    finish(p, total, bias, channel, target, count)


@kernel
def matmul_i16(params, begin, end, scratch):
    p = view(MATMUL_I16, params)
    for tile in range(begin, end):
        rest = truncated_divide(tile, p.panel_tiles)
        first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
        block = truncated_divide(rest, p.groups)
        group = rest - block * p.groups
        first = block * p.block
        count = min(p.block, p.rows - first)
        rows, stride = scratch, 2 * p.depth
        if p.source == ROWS_IN_MEMORY:
            stride = p.row_stride
            rows = p.input + first * stride + 2 * group * p.group_channels
        elif p.source == ROWS_OF_WINDOWS:
            gather_windows(p, rows, stride, group, first, count, 0)
        else:
            gather_transposed_windows(p, rows, stride, group, first, count, 0)
        for panel in range(first_panel, min(first_panel + p.tile_panels, p.panels)):
            index = group * p.panels + panel
            channel = index * LANES
            weights, bias = p.weights + channel * p.depth, p.bias + 8 * channel
            target = p.output + first * p.output_stride + 2 * (group * p.channels + panel * LANES)
            wanted = min(int64(LANES), p.channels - panel * LANES)
            row = int64(0)
            while row + 4 <= count:
                four_rows(p, rows + row * stride, stride, weights, bias, channel, target, wanted)
                row += 4
                target += 4 * p.output_stride
            while row < count:
                one_row(p, rows + row * stride, weights, bias, channel, target, wanted)
                row += 1
                target += p.output_stride
    return 0

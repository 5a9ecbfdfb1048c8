"""Products of int16 rows with int8 weights: convolutions, transposed ones and dense layers, with exact sums.

Two products at a time are summed in 32 bits (vpdpwssd, vpmaddwd), for so long as that holds them, then in 64.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, kernel, truncated_divide, u8, view
from runtime.kernels.epilogue_i16 import requantize_wide_channels
from runtime.kernels.matmul_parameters import ROWS_IN_MEMORY, ROWS_OF_WINDOWS, ROWS_TO_COPY
from runtime.kernels.wide_parameters import MATMUL_I16, RUN
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.tile import add_outer_dot_s16_s8, add_tiles, store_tile, zero_tile
from runtime.simd.vector import I32x16, I64x16, convert, load, store, store_first

LANES = 16
LINE = 64  # bytes of a vector
PAIR = 2 * LANES  # bytes of weights of two products
ROWS = 6


@inline
def clear(target, size, padding):
    """Padding is zeros."""
    for i in range(size):
        u8(target)[i] = 0


gather_windows, gather_transposed_windows = window_gatherer(2, plain_copy, clear)


@inline
def sums_of_rows(a, stride, w, pairs, sums):
    acc = zero_tile(I32x16, ROWS, 1)
    for k in range(pairs):
        acc = add_outer_dot_s16_s8(acc, a + 4 * k, stride, w + PAIR * k)
    store_tile(acc, sums, LINE)


@inline
def sums_of_one_row(a, stride, w, pairs, sums):
    # Four sums at a time: one alone would wait for itself.
    acc = acc_1 = acc_2 = acc_3 = zero_tile(I32x16, 1, 1)
    fours = pairs >> 2
    for _ in range(fours):
        acc = add_outer_dot_s16_s8(acc, a, stride, w)
        acc_1 = add_outer_dot_s16_s8(acc_1, a + 4, stride, w + PAIR)
        acc_2 = add_outer_dot_s16_s8(acc_2, a + 8, stride, w + 2 * PAIR)
        acc_3 = add_outer_dot_s16_s8(acc_3, a + 12, stride, w + 3 * PAIR)
        a += 16
        w += 4 * PAIR
    for _ in range(pairs - 4 * fours):
        acc = add_outer_dot_s16_s8(acc, a, stride, w)
        a += 4
        w += PAIR
    store_tile(add_tiles(add_tiles(acc, acc_1), add_tiles(acc_2, acc_3)), sums, LINE)


def panel_product(sums_of, rows):
    """Device function: `rows` rows, `stride` bytes apart, times one panel, requantized, to the output."""

    @inline
    def product(p, a, stride, w, bias, channel, target, count, sums):
        totals = sums + ROWS * LINE
        for r in range(rows):
            store(totals + 2 * LINE * r, load(I64x16, bias))
        left = (p.depth + 1) >> 1
        while left > 0:
            pairs = min(left, int64(RUN >> 1))
            sums_of(a, stride, w, pairs, sums)
            for r in range(rows):
                at = totals + 2 * LINE * r
                store(at, load(I64x16, at) + convert(I64x16, load(I32x16, sums + LINE * r)))
            a += 4 * pairs
            w += PAIR * pairs
            left -= pairs
        for r in range(rows):
            value = requantize_wide_channels(p, load(I64x16, totals + 2 * LINE * r), channel)
            if count >= LANES:
                store(target + r * p.output_stride, value)
            else:
                store_first(target + r * p.output_stride, value, count)

    return product


rows_product, row_product = panel_product(sums_of_rows, ROWS), panel_product(sums_of_one_row, 1)


@kernel
def matmul_i16(params, begin, end, scratch):
    p = view(MATMUL_I16, params)
    gathered = scratch + 3 * ROWS * LINE
    padded = (p.depth + 1) & -2
    for tile in range(begin, end):
        rest = truncated_divide(tile, p.panel_tiles)
        first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
        block = truncated_divide(rest, p.groups)
        group = rest - block * p.groups
        first = block * p.block
        count = min(p.block, p.rows - first)
        rows, stride = gathered, 2 * padded
        in_memory = p.input + first * p.row_stride + 2 * group * p.group_channels
        if p.source == ROWS_IN_MEMORY:
            rows, stride = in_memory, p.row_stride
        elif p.source == ROWS_TO_COPY:
            for i in range(count):
                plain_copy(rows + i * stride, in_memory + i * p.row_stride, 2 * p.depth)
        elif p.source == ROWS_OF_WINDOWS:
            gather_windows(p, rows, stride, group, first, count, 0)
        else:
            gather_transposed_windows(p, rows, stride, group, first, count, 0)
        for panel in range(first_panel, min(first_panel + p.tile_panels, p.panels)):
            index = group * p.panels + panel
            channel = index * LANES
            weights, bias = p.weights + channel * padded, p.bias + 8 * channel
            target = p.output + first * p.output_stride + 2 * (group * p.channels + panel * LANES)
            wanted = min(int64(LANES), p.channels - panel * LANES)
            row = int64(0)
            while row < count:
                if count >= ROWS:
                    row = min(row, count - ROWS)  # the last block may compute some rows once more
                    at = rows + row * stride
                    rows_product(p, at, stride, weights, bias, channel, target + row * p.output_stride, wanted, scratch)
                    row += ROWS
                else:
                    at = rows + row * stride
                    row_product(p, at, stride, weights, bias, channel, target + row * p.output_stride, wanted, scratch)
                    row += 1
    return 0

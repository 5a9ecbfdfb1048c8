"""int8 products by AMX tiles: 32 rows times a panel of 32 channels at a time. Imports numba.

Bytes are multiplied signed, so that rows which lie in memory in one piece are read where they are.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, kernel, truncated_divide, view
from runtime.kernels.matmul_i8 import fill_bytes
from runtime.kernels.matmul_parameters import MATMUL_TILES_I8, ROWS_IN_MEMORY, ROWS_OF_WINDOWS, ROWS_TO_COPY
from runtime.kernels.requantize_lanes import factor_bytes, requantize_lanes
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.amx import (
    add_tile_product_s8_s8,
    load_tile_configuration,
    load_tile_rows,
    release_tiles,
    store_tile_rows,
)
from runtime.simd.lanes import store_lane_halves
from runtime.simd.vector import I8x32, I32x16, load, prefetch, store_first

ROWS = WIDTH = 32
LINE = 64  # bytes of a vector
SUMS_ROW = 4 * WIDTH
SUMS = ROWS * SUMS_ROW
PREFETCH_STEPS = 4

gather_windows, gather_transposed_windows = window_gatherer(1, plain_copy, fill_bytes)


@inline
def requantize_pairs(p, count, sums, factors, vector_bytes, target, channels):
    """`count` pairs of rows of sums to the output."""
    for _ in range(count):
        value = requantize_lanes(
            p,
            load(I32x16, sums),
            load(I32x16, sums + LINE),
            load(I32x16, sums + SUMS_ROW),
            load(I32x16, sums + SUMS_ROW + LINE),
            factors,
            factors + vector_bytes,
            factors,
            factors + vector_bytes,
        )
        if channels >= WIDTH:
            store_lane_halves(target, target + p.output_stride, value)
        else:
            store_lane_halves(sums, sums + WIDTH, value)  # these sums are used up
            store_first(target, load(I8x32, sums), channels)
            store_first(target + p.output_stride, load(I8x32, sums + WIDTH), channels)
        sums += 2 * SUMS_ROW
        target += 2 * p.output_stride


@inline
def prefetch_panel_step(b, step_bytes):
    """What the panel's product needs some steps later."""
    for line in range(step_bytes >> 1):
        prefetch(b + PREFETCH_STEPS * LINE * (step_bytes >> 1) + LINE * line)


@kernel
def matmul_i8_tiles(params, begin, end, scratch):
    p = view(MATMUL_TILES_I8, params)
    load_tile_configuration(p.tile_configuration)
    channels, panels = p.channels, p.panels
    depth = p.steps * p.step_bytes
    sums, gathered = scratch, scratch + 2 * SUMS
    vector_bytes = factor_bytes(p)
    tile_bytes = LINE * (p.step_bytes >> 2)
    waiting = old_sums = old_factors = old_target = old_channels = int64(0)
    for tile in range(begin, end):
        rest = truncated_divide(tile, p.panel_tiles)
        first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
        block = truncated_divide(rest, p.groups)
        group = rest - block * p.groups
        first = min(block * p.block, p.rows - ROWS)  # the last block may compute some rows once more
        count = min(p.block, p.rows - first)
        rows, stride = gathered, depth
        if p.source == ROWS_IN_MEMORY:
            rows, stride = p.input + first * p.row_stride + group * p.group_channels, p.row_stride
        elif p.source == ROWS_TO_COPY:
            for i in range(count):
                source = p.input + (first + i) * p.row_stride + group * p.group_channels
                plain_copy(gathered + i * depth, source, p.group_channels)
        elif p.source == ROWS_OF_WINDOWS:
            gather_windows(p, gathered, depth, group, first, count, p.padding)
        else:
            gather_transposed_windows(p, gathered, depth, group, first, count, p.padding)
        for panel in range(first_panel, min(first_panel + p.tile_panels, panels)):
            index = group * panels + panel
            weights, bias = p.weights + index * WIDTH * depth, p.bias + 4 * index * WIDTH
            row = int64(0)
            while row < count:
                row = min(row, count - ROWS)
                upper, lower, b = rows + row * stride, rows + (row + 16) * stride, weights
                load_tile_rows(0, bias, 0)
                load_tile_rows(1, bias + LINE, 0)
                load_tile_rows(2, bias, 0)
                load_tile_rows(3, bias + LINE, 0)
                for _ in range(p.steps):
                    load_tile_rows(4, upper, stride)
                    load_tile_rows(6, b, LINE)
                    load_tile_rows(7, b + tile_bytes, LINE)
                    add_tile_product_s8_s8(0, 4, 6)
                    add_tile_product_s8_s8(1, 4, 7)
                    load_tile_rows(5, lower, stride)
                    add_tile_product_s8_s8(2, 5, 6)
                    add_tile_product_s8_s8(3, 5, 7)
                    if row == 0:
                        prefetch_panel_step(b, p.step_bytes)
                    upper += p.step_bytes
                    lower += p.step_bytes
                    b += 2 * tile_bytes
                    # The vector units requantize the sums before these meanwhile.
                    pairs = min(waiting, p.pairs_per_step)
                    requantize_pairs(p, pairs, old_sums, old_factors, vector_bytes, old_target, old_channels)
                    waiting -= pairs
                    old_sums += pairs * 2 * SUMS_ROW
                    old_target += pairs * 2 * p.output_stride
                store_tile_rows(0, sums, SUMS_ROW)
                store_tile_rows(1, sums + LINE, SUMS_ROW)
                store_tile_rows(2, sums + 16 * SUMS_ROW, SUMS_ROW)
                store_tile_rows(3, sums + 16 * SUMS_ROW + LINE, SUMS_ROW)
                waiting, old_sums = int64(ROWS // 2), sums
                sums = 2 * scratch + SUMS - sums  # the other of the two buffers
                old_factors = p.factors + 2 * index * vector_bytes
                old_target = p.output + (first + row) * p.output_stride + group * channels + panel * WIDTH
                old_channels = channels - panel * WIDTH
                row += ROWS
    requantize_pairs(p, waiting, old_sums, old_factors, vector_bytes, old_target, old_channels)
    release_tiles()
    return 0

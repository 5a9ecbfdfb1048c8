"""int8 products by AMX tiles: 32 rows times a panel of 32 channels at a time. Imports numba.

Bytes are multiplied signed. Rows are read where they lie, if they lie there in one piece: those of a 1x1 convolution in
the input, those of a larger one in a copy of a few of its lines with their padding, where a row's neighbour is some
bytes on. On from one line to the next that gives rows which belong to no output and are left out at the end.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i64, inline, kernel, truncated_divide, view
from runtime.kernels.lines import line_copier
from runtime.kernels.matmul_i8 import fill_bytes
from runtime.kernels.matmul_parameters import (
    MATMUL_TILES_I8,
    ROWS_IN_MEMORY,
    ROWS_OF_LINES,
    ROWS_OF_WINDOWS,
    ROWS_TO_COPY,
)
from runtime.kernels.requantize_lanes import factor_bytes, requantize_rows, scaling_of
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.amx import (
    add_tile_product_s8_s8,
    load_tile_configuration,
    load_tile_rows,
    release_tiles,
    store_tile_rows,
)
from runtime.simd.lanes import store_even_halves, store_odd_halves
from runtime.simd.vector import I8x32, load, prefetch, store_first

ROWS = WIDTH = 32
LINE = 64  # bytes of a vector
SUMS_ROW = 4 * WIDTH
SUMS = ROWS * SUMS_ROW
PREFETCH_STEPS = 4
EVERY_ROW = 1 << 62

gather_windows, gather_transposed_windows = window_gatherer(1, plain_copy, fill_bytes)
copy_lines = line_copier(1, plain_copy, fill_bytes)


@inline
def requantize_pairs(p, scaling, count, sums, factors, vector_bytes, target, channels, x, used, width):
    """`count` pairs of rows of sums to the output; gives where the next go. p: block. scaling: what it has of that.

    x: the first row's place in its line; rows from `used` to `width` of a line belong to no output.
    """
    stride = p.output_stride
    if used == width and channels >= WIDTH:
        for _ in range(count):
            value = requantize_rows(scaling, sums, sums + SUMS_ROW, factors, vector_bytes)
            store_even_halves(target, value)
            store_odd_halves(target + stride, value)
            sums += 2 * SUMS_ROW
            target += 2 * stride
        return sums, target, x
    wanted = min(channels, int64(WIDTH))
    for _ in range(count):
        value = requantize_rows(scaling, sums, sums + SUMS_ROW, factors, vector_bytes)
        store_even_halves(sums, value)  # these sums are used up
        store_odd_halves(sums + WIDTH, value)
        for half in range(2):
            if x < used:
                store_first(target, load(I8x32, sums + WIDTH * half), wanted)
                target += stride
            x = x + 1 if x + 1 < width else int64(0)
        sums += 2 * SUMS_ROW
    return sums, target, x


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
    vector_bytes, scaling = factor_bytes(p), scaling_of(p)
    tile_bytes = LINE * (p.step_bytes >> 2)
    gathered_rest = int64(-1)
    waiting = old_sums = old_factors = old_target = old_channels = old_x = int64(0)
    used, width = int64(EVERY_ROW), int64(EVERY_ROW)
    if p.source == ROWS_OF_LINES and p.segments == 1:
        used, width = p.out_w, p.line_rows
    for tile in range(begin, end):
        rest = truncated_divide(tile, p.panel_tiles)
        first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
        block = truncated_divide(rest, p.groups)
        group = rest - block * p.groups
        gather, gathered_rest = rest != gathered_rest, rest  # tiles of other panels have the same rows
        rows, stride, segments, segment_bytes = gathered, depth, int64(1), int64(0)
        first, count = int64(0), int64(0)
        if p.source == ROWS_OF_LINES:
            batch = truncated_divide(block, p.line_blocks)
            line = (block - batch * p.line_blocks) * p.lines
            line = min(line, p.out_h - p.lines)  # the last block may compute some lines once more
            first = (batch * p.out_h + line) * p.out_w
            image = p.input + batch * p.in_h * p.in_w * p.in_c
            line_in = line * p.stride_h - p.pad_h
            if p.copied != 0:
                if gather:
                    copy_lines(p, gathered, image, line_in, p.lines_in)
            else:
                rows = image + line_in * p.line_bytes
            stride, count = p.row_stride, p.segment_rows
            segments, segment_bytes = p.segments, p.stride_h * p.line_bytes
        else:
            first = min(block * p.block, p.rows - ROWS)  # the last block may compute some rows once more
            count = min(p.block, p.rows - first)
            if p.source == ROWS_IN_MEMORY:
                rows, stride = p.input + first * p.row_stride + group * p.group_channels, p.row_stride
            elif not gather:
                pass
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
            weights, factors = p.weights + index * WIDTH * depth, p.factors + 2 * index * vector_bytes
            start = p.start + index * 4 * WIDTH
            panel_output = p.output + first * p.output_stride + group * channels + panel * WIDTH
            for segment in range(segments):
                row = int64(0)
                while row < count:
                    row = min(row, count - ROWS)
                    upper, b = rows + segment * segment_bytes + row * stride, weights
                    load_tile_rows(0, start, 0)
                    load_tile_rows(1, start + LINE, 0)
                    load_tile_rows(2, start, 0)
                    load_tile_rows(3, start + LINE, 0)
                    for step in range(p.steps):
                        a = upper + i64(p.step_offsets)[step]
                        load_tile_rows(4, a, stride)
                        load_tile_rows(6, b, LINE)
                        load_tile_rows(7, b + tile_bytes, LINE)
                        add_tile_product_s8_s8(0, 4, 6)
                        add_tile_product_s8_s8(1, 4, 7)
                        load_tile_rows(5, a + 16 * stride, stride)
                        add_tile_product_s8_s8(2, 5, 6)
                        add_tile_product_s8_s8(3, 5, 7)
                        if row == 0 and segment == 0:
                            prefetch_panel_step(b, p.step_bytes)
                        b += 2 * tile_bytes
                        # The vector units requantize the sums before these meanwhile.
                        pairs = min(waiting, p.pairs_per_step)
                        waiting -= pairs
                        old_sums, old_target, old_x = requantize_pairs(
                            p,
                            scaling,
                            pairs,
                            old_sums,
                            old_factors,
                            vector_bytes,
                            old_target,
                            old_channels,
                            old_x,
                            used,
                            width,
                        )
                    store_tile_rows(0, sums, SUMS_ROW)
                    store_tile_rows(1, sums + LINE, SUMS_ROW)
                    store_tile_rows(2, sums + 16 * SUMS_ROW, SUMS_ROW)
                    store_tile_rows(3, sums + 16 * SUMS_ROW + LINE, SUMS_ROW)
                    waiting, old_sums, old_factors = int64(ROWS // 2), sums, factors
                    sums = 2 * scratch + SUMS - sums  # the other of the two buffers
                    line = truncated_divide(row, width)
                    old_x = row - line * width
                    old_target = panel_output + (line * used + min(old_x, used)) * p.output_stride
                    if segments > 1:
                        old_target += segment * count * p.output_stride
                    old_channels = channels - panel * WIDTH
                    row += ROWS
    requantize_pairs(
        p, scaling, waiting, old_sums, old_factors, vector_bytes, old_target, old_channels, old_x, used, width
    )
    release_tiles()
    return 0

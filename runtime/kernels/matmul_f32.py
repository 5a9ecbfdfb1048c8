"""float32 products: the body of the kernels of matmul_f32_6x32 and matmul_f32_6x16. Imports numba."""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import f32, inline, kernel, truncated_divide, view
from runtime.kernels.matmul_parameters import MATMUL_F32, ROWS_IN_MEMORY, ROWS_OF_WINDOWS
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.tile import add_outer_product, row_tile, store_tile
from runtime.simd.vector import F32x16, load, select, splat, store, zero

LANES = 16
LINE = 64  # bytes of a vector


@inline
def fill_zero(target, size, padding):
    """`size` bytes of 0.0."""
    while size >= LINE:
        store(target, zero(F32x16))
        target += LINE
        size -= LINE
    for i in range(size >> 2):
        f32(target)[i] = float32(0)


gather_windows, gather_transposed_windows = window_gatherer(4, plain_copy, fill_zero)


@inline
def clamp_row(source, target, channels, low, high):
    """Write `channels` clamped float32 from a buffer of whole vectors; NaN stays NaN."""
    while channels >= LANES:
        value = load(F32x16, source)
        value = select(value < splat(F32x16, low), splat(F32x16, low), value)
        store(target, select(value > splat(F32x16, high), splat(F32x16, high), value))
        source += LINE
        target += LINE
        channels -= LANES
    for i in range(channels):
        value = f32(source)[i]
        value = low if value < low else value
        f32(target)[i] = high if value > high else value


def panel_product(rows_at_once, vectors):
    """Device function: rows (`a`, `stride` bytes apart) times one panel, plus bias, clamped, to the output."""

    def block(rows):
        @inline
        def run(a, stride, b, bias, depth, buffer):
            acc = row_tile(F32x16, rows, vectors, bias)
            for k in range(depth):
                acc = add_outer_product(acc, a + 4 * k, stride, b + LINE * vectors * k)
            store_tile(acc, buffer, LINE * vectors)

        return run

    full, single = block(rows_at_once), block(1)

    @inline
    def product(a, stride, count, b, bias, depth, output, output_stride, channels, low, high, buffer):
        row = int64(0)
        while row < count:
            if count >= rows_at_once:
                row = min(row, count - rows_at_once)  # the last block may compute some rows once more
                full(a + row * stride, stride, b, bias, depth, buffer)
                computed = int64(rows_at_once)
            else:
                single(a + row * stride, stride, b, bias, depth, buffer)
                computed = int64(1)
            for i in range(computed):
                clamp_row(buffer + LINE * vectors * i, output + (row + i) * output_stride, channels, low, high)
            row += computed

    return product


def matmul_kernel(rows_at_once, vectors):
    """A kernel over MATMUL_F32 that computes `rows_at_once` x 16 * `vectors` outputs in registers."""
    product = panel_product(rows_at_once, vectors)
    width = LANES * vectors
    buffer_bytes = rows_at_once * LINE * vectors

    @kernel
    def matmul(params, begin, end, scratch):
        p = view(MATMUL_F32, params)
        low, high = float32(p.low), float32(p.high)
        depth, channels, panels = p.depth, p.channels, p.panels
        panel_bytes = 4 * width * depth
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.panel_tiles)
            first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
            block = truncated_divide(rest, p.groups)
            group = rest - block * p.groups
            first = block * p.block
            count = min(p.block, p.rows - first)
            rows, stride = scratch + buffer_bytes, 4 * depth
            if p.source == ROWS_IN_MEMORY:
                rows, stride = p.input + first * p.row_stride + group * stride, p.row_stride
            elif p.source == ROWS_OF_WINDOWS:
                gather_windows(p, rows, stride, group, first, count, 0)
            else:
                gather_transposed_windows(p, rows, stride, group, first, count, 0)
            for panel in range(first_panel, min(first_panel + p.tile_panels, panels)):
                index = group * panels + panel
                product(
                    rows,
                    stride,
                    count,
                    p.weights + index * panel_bytes,
                    p.bias + index * 4 * width,
                    depth,
                    p.output + first * p.output_stride + 4 * (group * channels + panel * width),
                    p.output_stride,
                    min(int64(width), channels - panel * width),
                    low,
                    high,
                    scratch,
                )
        return 0

    return matmul

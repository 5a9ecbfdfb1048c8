"""float32 products: the body of the kernels of matmul_f32_12x32 and matmul_f32_6x16. Imports numba."""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import f32, inline, kernel, truncated_divide, view
from runtime.kernels.matmul_parameters import MATMUL_F32, ROWS_IN_MEMORY, ROWS_OF_WINDOWS, ROWS_TO_COPY
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.tile import add_outer_product, load_tile, store_tile
from runtime.simd.vector import F32x16, load, select, splat, store, zero

LANES = 16
LINE = 64  # bytes of a vector
DEPTH = 256


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
    """Device function: rows (`a`, `stride` bytes apart) times one panel, plus bias, clamped, to the output.

    Products are summed over DEPTH at a time, so that this much of the panel stays in the first-level cache for all
    rows. buffer: two sets of sums, which are read from one and written to the other.
    """
    row_bytes = LINE * vectors
    few = rows_at_once // 2

    def block(rows):
        @inline
        def run(a, stride, b, depth, sums, sums_stride, target):
            acc = load_tile(F32x16, rows, vectors, sums, sums_stride)
            for k in range(depth):
                acc = add_outer_product(acc, a + 4 * k, stride, b + row_bytes * k)
            store_tile(acc, target, row_bytes)

        return run

    many_rows, few_rows, one_row = block(rows_at_once), block(few), block(1)

    @inline
    def product(a, stride, count, b, bias, depth, output, output_stride, channels, low, high, buffer):
        sums, sums_stride, target = bias, int64(0), buffer
        done = int64(0)
        while done < depth or done == 0:
            now = min(depth - done, int64(DEPTH))
            row = int64(0)
            while row < count:
                # The last rows may be computed once more.
                at_a, at_sums = a + 4 * done, sums
                if count - row > few and count >= rows_at_once:
                    computed = int64(rows_at_once)
                    row = min(row, count - computed)
                    many_rows(
                        at_a + row * stride,
                        stride,
                        b,
                        now,
                        at_sums + row * sums_stride,
                        sums_stride,
                        target + row * row_bytes,
                    )
                elif count >= few:
                    computed = int64(few)
                    row = min(row, count - computed)
                    few_rows(
                        at_a + row * stride,
                        stride,
                        b,
                        now,
                        at_sums + row * sums_stride,
                        sums_stride,
                        target + row * row_bytes,
                    )
                else:
                    computed = int64(1)
                    one_row(
                        at_a + row * stride,
                        stride,
                        b,
                        now,
                        at_sums + row * sums_stride,
                        sums_stride,
                        target + row * row_bytes,
                    )
                if done + now == depth:
                    for i in range(row, row + computed):
                        clamp_row(target + row_bytes * i, output + i * output_stride, channels, low, high)
                row += computed
            sums, sums_stride = target, int64(row_bytes)
            target = 2 * buffer + count * row_bytes - target  # the other set
            b += row_bytes * now
            done += max(now, int64(1))

    return product


def matmul_kernel(rows_at_once, vectors):
    """A kernel over MATMUL_F32 that computes `rows_at_once` x 16 * `vectors` outputs in registers."""
    product = panel_product(rows_at_once, vectors)
    width = LANES * vectors

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
            rows, stride = scratch + 2 * p.block * LINE * vectors, p.gathered_stride
            if p.source == ROWS_IN_MEMORY:
                rows, stride = p.input + first * p.row_stride + group * 4 * depth, p.row_stride
            elif p.source == ROWS_TO_COPY:
                for i in range(count):
                    source = p.input + (first + i) * p.row_stride + group * 4 * depth
                    plain_copy(rows + i * stride, source, 4 * depth)
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

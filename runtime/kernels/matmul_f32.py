"""float32 products: the body of the kernels of matmul_f32_12x32 and matmul_f32_6x16. Imports numba."""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import f32, i64, inline, kernel, truncated_divide, view
from runtime.kernels.depthwise_parameters import DEPTHWISE_F32
from runtime.kernels.lines import line_copier
from runtime.kernels.matmul_parameters import (
    MATMUL_F32,
    ROWS_IN_MEMORY,
    ROWS_OF_DEPTHWISE,
    ROWS_OF_LINES,
    ROWS_OF_WINDOWS,
    ROWS_TO_COPY,
)
from runtime.kernels.windows import plain_copy, window_gatherer
from runtime.simd.tile import add_outer_product, add_tiles, clamp_tile, load_tile, store_tile
from runtime.simd.vector import F32x16, prefetch, store, zero

LANES = 16
LINE = 64  # bytes of a vector
AHEAD = 6144  # bytes, where each weight is used for one row only


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
copy_lines = line_copier(4, plain_copy, fill_zero)


def panel_product(rows_at_once, vectors, used=None):
    """Device function: rows (`a`, `stride` bytes apart) times one panel, plus bias, clamped, to the output.

    residual: where to find what is added before that, for panels that are whole; 0 for nothing.

    The depth is summed up in passes, so that a pass's part of the panel stays in the first-level cache for all rows. A
    pass is some pieces: piece i is sizes[i] numbers, offsets[i] bytes from a row's address. buffer: two sets of sums,
    which are read from one and written to the other. used: how many of the panel's vectors are computed.
    """
    row_bytes = LINE * vectors
    columns = used or vectors
    fewer, few = 5 * rows_at_once // 6, rows_at_once // 2

    def block(rows):
        @inline
        def run(
            p,
            a,
            stride,
            b,
            ahead,
            step,
            first,
            end,
            sums,
            sums_stride,
            target,
            target_stride,
            residual,
            last,
            low,
            high,
        ):
            acc = load_tile(F32x16, rows, columns, sums, sums_stride)
            for piece in range(first, end):
                at = a + i64(p.piece_offsets)[piece]
                for _ in range(i64(p.piece_sizes)[piece]):
                    if rows > few:
                        prefetch(ahead)
                    else:
                        for line in range(columns):
                            prefetch(ahead + LINE * line)
                    ahead += step
                    acc = add_outer_product(acc, at, stride, b)
                    at += 4
                    b += row_bytes
            if last:
                if residual != 0:
                    acc = add_tiles(acc, load_tile(F32x16, rows, columns, residual, p.residual_stride))
                acc = clamp_tile(acc, low, high)
            store_tile(acc, target, target_stride)

        return run

    many_rows, fewer_rows, few_rows, one_row = block(rows_at_once), block(fewer), block(few), block(1)

    @inline
    def product(p, a, stride, count, b, bias, output, output_stride, residual, channels, low, high, buffer):
        sums, sums_stride, room = bias, int64(0), buffer
        whole = channels >= LANES * columns
        first = int64(0)
        # Hardware does not fetch ahead across pages, and new weights are far away: while one pass is computed, those of
        # the next are fetched, spread over all its rows, since memory is slower than the first rows alone would want.
        share = min(truncated_divide(row_bytes * rows_at_once, count), int64(row_bytes))
        for i in range(p.passes):
            end, last = i64(p.pass_ends)[i], i + 1 == p.passes
            depth = int64(0)
            for piece in range(first, end):
                depth += i64(p.piece_sizes)[piece]
            ahead = b + row_bytes * depth
            target, target_stride = room, int64(row_bytes)
            if last and whole:
                target, target_stride = output, output_stride
            row = int64(0)
            while row < count:
                computed, left = int64(1), count - row
                if left > few and count >= fewer:
                    # Fewer at once where that leaves less to compute once more: 49 rows are 5 times 10.
                    blocks = truncated_divide(left + rows_at_once - 1, rows_at_once)
                    many = blocks * fewer < left and count >= rows_at_once
                    computed = int64(rows_at_once) if many else int64(fewer)
                elif count >= few:
                    computed = int64(few)
                row = min(row, count - computed)  # the last rows may be computed once more
                at, at_sums, to = a + row * stride, sums + row * sums_stride, target + row * target_stride
                rest = residual + row * p.residual_stride if residual != 0 else int64(0)
                if computed == rows_at_once:
                    many_rows(
                        p,
                        at,
                        stride,
                        b,
                        ahead,
                        share,
                        first,
                        end,
                        at_sums,
                        sums_stride,
                        to,
                        target_stride,
                        rest,
                        last,
                        low,
                        high,
                    )
                    ahead += share * depth
                elif computed == fewer:
                    fewer_rows(
                        p,
                        at,
                        stride,
                        b,
                        ahead,
                        share,
                        first,
                        end,
                        at_sums,
                        sums_stride,
                        to,
                        target_stride,
                        rest,
                        last,
                        low,
                        high,
                    )
                    ahead += share * depth
                elif computed == few:
                    few_rows(
                        p,
                        at,
                        stride,
                        b,
                        ahead,
                        share,
                        first,
                        end,
                        at_sums,
                        sums_stride,
                        to,
                        target_stride,
                        rest,
                        last,
                        low,
                        high,
                    )
                else:
                    one_row(
                        p,
                        at,
                        stride,
                        b,
                        b + AHEAD,
                        int64(row_bytes),
                        first,
                        end,
                        at_sums,
                        sums_stride,
                        to,
                        target_stride,
                        rest,
                        last,
                        low,
                        high,
                    )
                if last and not whole:
                    for r in range(row, row + computed):
                        plain_copy(output + r * output_stride, room + row_bytes * r, 4 * channels)
                row += computed
            sums, sums_stride = room, int64(row_bytes)
            room = 2 * buffer + count * row_bytes - room  # the other set
            b += row_bytes * depth
            first = end

    return product


def segments_product(rows_at_once, vectors):
    """Device function: rows of one group times panels, to the output.

    Rows come in `segments` of `count`, `segment_bytes` apart, and give one row of output after the other from `output`
    on; residual as in panel_product, for the same rows.
    """
    product = panel_product(rows_at_once, vectors)
    narrow_product = panel_product(rows_at_once, vectors, 1)  # of what is left for the last panel
    width = LANES * vectors

    @inline
    def multiply(
        p, rows, stride, count, segments, segment_bytes, group, first_panel, end_panel, output, residual, buffer
    ):
        low, high = float32(p.low), float32(p.high)
        step = p.output_stride
        for panel in range(first_panel, end_panel):
            index = group * p.panels + panel
            weights, bias = p.weights + index * 4 * width * p.depth, p.bias + index * 4 * width
            left = min(int64(width), p.channels - panel * width)
            for segment in range(segments):
                a, row = rows + segment * segment_bytes, segment * count
                to, rest = output + row * step + 4 * panel * width, int64(0)
                if residual != 0:
                    rest = residual + row * p.residual_stride + 4 * panel * width
                if left > LANES or vectors == 1:
                    product(p, a, stride, count, weights, bias, to, step, rest, left, low, high, buffer)
                else:
                    narrow_product(p, a, stride, count, weights, bias, to, step, rest, left, low, high, buffer)

    return multiply


@inline
def no_depthwise_row(p, row, target, pixel, room):
    """For machines where depthwise convolutions have another kernel."""


@inline
def no_room(p, room):
    """As no_depthwise_row."""


def matmul_kernel(rows_at_once, vectors, depthwise_row=no_depthwise_row, clear=no_room):
    """A kernel over MATMUL_F32 that computes `rows_at_once` x 16 * `vectors` outputs in registers.

    depthwise_row, clear: see runtime.kernels.depthwise_f32_3x3.
    """
    multiply = segments_product(rows_at_once, vectors)

    @kernel
    def matmul(params, begin, end, scratch):
        p = view(MATMUL_F32, params)
        depth, channels, panels = p.depth, p.channels, p.panels
        gathered_rest = int64(-1)
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.panel_tiles)
            first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
            block = truncated_divide(rest, p.groups)
            group = rest - block * p.groups
            first = block * p.block
            count = min(p.block, p.rows - first)
            rows, stride = scratch + 2 * p.block * LINE * vectors, p.gathered_stride
            segments, segment_bytes = int64(1), int64(0)
            gather, gathered_rest = rest != gathered_rest, rest  # tiles of other panels have the same rows
            if p.source == ROWS_IN_MEMORY:
                rows, stride = p.input + first * p.row_stride + group * 4 * depth, p.row_stride
            elif p.source == ROWS_TO_COPY:
                for i in range(count if gather else 0):
                    source = p.input + (first + i) * p.row_stride + group * 4 * depth
                    plain_copy(rows + i * stride, source, 4 * depth)
            elif p.source == ROWS_OF_LINES:
                batch = truncated_divide(block, p.line_blocks)
                line = (block - batch * p.line_blocks) * p.lines
                line = min(line, p.out_h - p.lines)  # the last block may compute some lines once more
                first, count = (batch * p.out_h + line) * p.out_w, p.out_w
                image = p.input + 4 * batch * p.in_h * p.in_w * p.in_c
                if gather:
                    copy_lines(p, rows, image, line * p.stride_h - p.pad_h, p.lines_in)
                stride, segments, segment_bytes = p.row_stride, p.lines, p.stride_h * p.line_bytes
            elif p.source == ROWS_OF_DEPTHWISE:
                batch = truncated_divide(block, p.line_blocks)
                line = min((block - batch * p.line_blocks) * p.lines, p.out_h - p.lines)
                first, count = (batch * p.out_h + line) * p.out_w, p.lines * p.out_w
                before, room = view(DEPTHWISE_F32, p.depthwise), rows
                rows += p.room
                if tile == begin:
                    clear(before, room)
                for y in range(p.lines):
                    depthwise_row(before, batch * p.out_h + line + y, rows + y * p.out_w * stride, stride, room)
            elif not gather:
                pass
            elif p.source == ROWS_OF_WINDOWS:
                gather_windows(p, rows, stride, group, first, count, 0)
            else:
                gather_transposed_windows(p, rows, stride, group, first, count, 0)
            at = p.output + first * p.output_stride + 4 * group * channels
            residual = int64(0)
            if p.residual != 0:
                residual = p.residual + first * p.residual_stride + 4 * group * channels
            end_panel = min(first_panel + p.tile_panels, panels)
            multiply(
                p, rows, stride, count, segments, segment_bytes, group, first_panel, end_panel, at, residual, scratch
            )
        return 0

    return matmul

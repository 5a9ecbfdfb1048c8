"""int8 products: the body of the kernels of matmul_i8_12x32 and matmul_i8_6x16. Imports numba.

Activations are multiplied as unsigned bytes x + 128, which is what dot product instructions take, so every row is
first copied that way; the bias holds the correction.
"""

from __future__ import annotations

from numba import int32, int64

from runtime.kernels.abi import i8, i32, inline, kernel, truncated_divide, u8, view
from runtime.kernels.epilogue_i8 import requantize_channels
from runtime.kernels.matmul_parameters import MATMUL_I8, ROWS_IN_MEMORY, ROWS_OF_WINDOWS
from runtime.kernels.requantize_lanes import factor_bytes, requantize_rows, scaling_of
from runtime.kernels.windows import window_gatherer
from runtime.simd.lanes import store_even_halves, store_odd_halves
from runtime.simd.tile import add_outer_dot_u8_s8, add_tiles, row_tile, store_tile, zero_tile
from runtime.simd.vector import I8x16, I8x32, I8x64, I32x16, load, splat, store, store_first

LANES = 16
LINE = 64  # bytes of a vector


@inline
def copy_as_unsigned(target, source, size):
    """`size` int8 as bytes x + 128."""
    while size >= 64:
        store(target, load(I8x64, source) ^ splat(I8x64, -128))
        source += 64
        target += 64
        size -= 64
    while size >= 16:
        store(target, load(I8x16, source) ^ splat(I8x16, -128))
        source += 16
        target += 16
        size -= 16
    while size >= 4:
        i32(target)[0] = i32(source)[0] ^ int32(-2139062144)  # 0x80 in every byte
        source += 4
        target += 4
        size -= 4
    while size > 0:
        u8(target)[0] = u8(source)[0] ^ 128
        source += 1
        target += 1
        size -= 1


@inline
def fill_bytes(target, size, value):
    """`size` bytes of `value`."""
    while size >= 16:
        store(target, splat(I8x16, value))
        target += 16
        size -= 16
    while size > 0:
        u8(target)[0] = value
        target += 1
        size -= 1


gather_windows, gather_transposed_windows = window_gatherer(1, copy_as_unsigned, fill_bytes)


def channels_epilogue(vectors):
    """Device function: `rows` rows of sums of a panel to the output, 16 channels at a time; the sums are used up.

    terms: address of an int32 per row to add, or 0. channel: where the multipliers of the panel's columns start in the
    arrays of `p`.
    """
    row_bytes = LINE * vectors

    @inline
    def finish(p, sums, rows, terms, channel, target, stride, channels):
        for i in range(rows):
            term = i32(terms)[i] if terms != 0 else int32(0)
            for v in range(0, channels, LANES):
                value = requantize_channels(p, load(I32x16, sums + 4 * v) + splat(I32x16, term), channel + v)
                if v + LANES <= channels:
                    store(target + v, value)
                else:
                    store(sums, value)  # this row's first sums have been read
                    for j in range(channels - v):
                        i8(target)[v + j] = i8(sums)[j]
            sums += row_bytes
            target += stride

    return finish


finish_channels = channels_epilogue(2)


@inline
def finish_lanes(p, sums, rows, terms, channel, target, stride, channels):
    """As `channels_epilogue(2)`, two rows at a time where there are factors for that: `terms` are 0 then."""
    if p.factors == 0:
        finish_channels(p, sums, rows, terms, channel, target, stride, channels)
    else:
        vector_bytes, scaling = factor_bytes(p), scaling_of(p)
        factors = p.factors + (channel >> 4) * vector_bytes
        for i in range(0, rows, 2):
            two = i + 1 < rows
            second = sums + 2 * LINE if two else sums
            value = requantize_rows(scaling, sums, second, factors, vector_bytes)
            if channels >= 2 * LANES:
                store_even_halves(target, value)
                if two:
                    store_odd_halves(target + stride, value)
            else:
                store_even_halves(sums, value)  # these sums are used up
                store_odd_halves(sums + 2 * LANES, value)
                store_first(target, load(I8x32, sums), channels)
                if two:
                    store_first(target + stride, load(I8x32, sums + 2 * LANES), channels)
            sums += 4 * LINE
            target += 2 * stride


def panel_product(rows_at_once, vectors, finish):
    """Device function: rows (`a`, `stride` bytes apart) times one panel, requantized by `finish`, to the output.

    bias: address of an int32 per column. row_terms: address of an int32 per row to add, or 0. channel: of the panel's
    first column.
    """
    row_bytes, rows_at_half = LINE * vectors, rows_at_once // 2

    def block(rows):
        @inline
        def run(a, stride, b, bias, quads, buffer):
            acc = row_tile(I32x16, rows, vectors, bias)
            for k in range(quads):
                acc = add_outer_dot_u8_s8(acc, a + 4 * k, stride, b + row_bytes * k)
            store_tile(acc, buffer, row_bytes)

        return run

    full, half = block(rows_at_once), block(rows_at_once // 2)

    @inline
    def single(a, stride, b, bias, quads, buffer):
        # Four sums at a time: one alone would wait for itself.
        acc = row_tile(I32x16, 1, vectors, bias)
        acc_1 = acc_2 = acc_3 = zero_tile(I32x16, 1, vectors)
        fours = quads >> 2
        for _ in range(fours):
            acc = add_outer_dot_u8_s8(acc, a, stride, b)
            acc_1 = add_outer_dot_u8_s8(acc_1, a + 4, stride, b + row_bytes)
            acc_2 = add_outer_dot_u8_s8(acc_2, a + 8, stride, b + 2 * row_bytes)
            acc_3 = add_outer_dot_u8_s8(acc_3, a + 12, stride, b + 3 * row_bytes)
            a += 16
            b += 4 * row_bytes
        for _ in range(quads - 4 * fours):
            acc = add_outer_dot_u8_s8(acc, a, stride, b)
            a += 4
            b += row_bytes
        store_tile(add_tiles(add_tiles(acc, acc_1), add_tiles(acc_2, acc_3)), buffer, row_bytes)

    @inline
    def product(p, a, stride, count, b, bias, row_terms, channel, quads, output, output_stride, channels, buffer):
        row = int64(0)
        while row < count:
            # The last block may compute some rows once more.
            if count >= rows_at_once and count - row > rows_at_half:
                row = min(row, count - rows_at_once)
                full(a + row * stride, stride, b, bias, quads, buffer)
                computed = int64(rows_at_once)
            elif count >= rows_at_half:
                row = min(row, count - rows_at_half)
                half(a + row * stride, stride, b, bias, quads, buffer)
                computed = int64(rows_at_half)
            else:
                single(a + row * stride, stride, b, bias, quads, buffer)
                computed = int64(1)
            terms = row_terms + 4 * row if row_terms != 0 else int64(0)
            finish(p, buffer, computed, terms, channel, output + row * output_stride, output_stride, channels)
            row += computed

    return product


def matmul_kernel(rows_at_once, vectors):
    """A kernel over MATMUL_I8 that computes `rows_at_once` x 16 * `vectors` outputs in registers."""
    product = panel_product(rows_at_once, vectors, finish_lanes if vectors == 2 else channels_epilogue(vectors))
    width = LANES * vectors
    buffer_bytes = rows_at_once * LINE * vectors

    @kernel
    def matmul(params, begin, end, scratch):
        p = view(MATMUL_I8, params)
        channels, panels = p.channels, p.panels
        stride = p.depth
        rows = scratch + buffer_bytes
        gathered_rest = int64(-1)
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.panel_tiles)
            first_panel = (tile - rest * p.panel_tiles) * p.tile_panels
            block = truncated_divide(rest, p.groups)
            group = rest - block * p.groups
            first = block * p.block
            count = min(p.block, p.rows - first)
            gather, gathered_rest = rest != gathered_rest, rest  # tiles of other panels have the same rows
            if not gather:
                pass
            elif p.source == ROWS_IN_MEMORY:
                for i in range(count):
                    source = p.input + (first + i) * p.row_stride + group * p.group_channels
                    copy_as_unsigned(rows + i * stride, source, p.group_channels)
            elif p.source == ROWS_OF_WINDOWS:
                gather_windows(p, rows, stride, group, first, count, p.padding)
            else:
                gather_transposed_windows(p, rows, stride, group, first, count, p.padding)
            for panel in range(first_panel, min(first_panel + p.tile_panels, panels)):
                index = group * panels + panel
                product(
                    p,
                    rows,
                    stride,
                    count,
                    p.weights + index * width * stride,
                    p.bias + 4 * index * width,
                    0,
                    index * width,
                    stride >> 2,
                    p.output + first * p.output_stride + group * channels + panel * width,
                    p.output_stride,
                    min(int64(width), channels - panel * width),
                    scratch,
                )
        return 0

    return matmul

"""Products of two computed int8 matrices: the body of batch_matmul_i8_6x32 and batch_matmul_i8_6x16.

sum (a - za) (b - zb) = sum (a + 128) b - (128 + za) sum b - zb sum a + depth za zb: the dot product of unsigned with
signed bytes, a term for each column and one for each row. All wraps modulo 2**32 as int32 does.
"""

from __future__ import annotations

from numba import int32, int64

from runtime.kernels.abi import i8, i32, i64, inline, kernel, truncated_divide, u8, view
from runtime.kernels.matmul_i8 import LANES, LINE, channels_epilogue, copy_as_unsigned, fill_bytes, panel_product
from runtime.kernels.matmul_parameters import BATCH_MATMUL_I8
from runtime.simd.vector import I8x16, I32x16, convert, load, splat, store, zero


@inline
def quad_of_rows(source, row_bytes, rows, sums):
    """(the first 4 of `rows` rows, 16 columns, as [16][4] bytes, with zeros for rows that are not there; `sums` and
    those of the columns).
    """
    low_byte = splat(I32x16, 255)
    value = convert(I32x16, load(I8x16, source))
    packed = value & low_byte
    sums += value
    if rows > 1:
        value = convert(I32x16, load(I8x16, source + row_bytes))
        packed |= (value & low_byte) << splat(I32x16, 8)
        sums += value
    if rows > 2:
        value = convert(I32x16, load(I8x16, source + 2 * row_bytes))
        packed |= (value & low_byte) << splat(I32x16, 16)
        sums += value
    if rows > 3:
        value = convert(I32x16, load(I8x16, source + 3 * row_bytes))
        packed |= value << splat(I32x16, 24)
        sums += value
    return packed, sums


@inline
def pack_panel(p, target, terms, source, columns, width, padded_depth):
    """[depth / 4][width][4] from a matrix of any strides, and each column's term."""
    if columns < width or p.depth < padded_depth:
        fill_bytes(target, padded_depth * width, 0)
    each, all_ = -(128 + p.a_zero), p.depth * p.a_zero * p.b_zero
    n = int64(0)
    if p.b_column == 1:
        while n + LANES <= columns:
            sums, at, to = zero(I32x16), source + n, target + 4 * n
            for k in range(0, p.depth, 4):
                packed, sums = quad_of_rows(at, p.b_row, p.depth - k, sums)
                store(to, packed)
                at += 4 * p.b_row
                to += 4 * width
            store(terms + 4 * n, sums * splat(I32x16, each) + splat(I32x16, all_))
            n += LANES
    while n < columns:
        total = int64(0)
        at, to = source + n * p.b_column, target + 4 * n
        quads = p.depth >> 2 if p.b_row == 1 else int64(0)
        for quad in range(quads):
            i32(to + 4 * width * quad)[0] = i32(at + 4 * quad)[0]
        for k in range(4 * quads):
            total += i8(at)[k]
        for k in range(4 * quads, p.depth):
            value = i8(at + k * p.b_row)[0]
            i8(to)[(k >> 2) * 4 * width + (k & 3)] = value
            total += value
        i32(terms)[n] = int32(all_ + each * total)
        n += 1
    while n < width:
        i32(terms)[n] = 0
        n += 1


@inline
def pack_rows(p, target, terms, source, rows, padded_depth):
    """[rows][depth] as bytes a + 128 from a matrix of any strides, and each row's term."""
    for i in range(rows):
        total = int64(0)
        at, to = source + i * p.a_row, target + i * padded_depth
        if p.a_column == 1:
            copy_as_unsigned(to, at, p.depth)
            if p.b_zero != 0:
                for k in range(p.depth):
                    total += i8(at)[k]
        else:
            for k in range(p.depth):
                value = i8(at + k * p.a_column)[0]
                u8(to)[k] = value + 128
                total += value
        i32(terms)[i] = int32(-p.b_zero * total)


def batch_matmul_kernel(rows_at_once, vectors):
    """A kernel over BATCH_MATMUL_I8."""
    product = panel_product(rows_at_once, vectors, channels_epilogue(vectors))
    width = LANES * vectors
    buffer_bytes = rows_at_once * LINE * vectors

    @kernel
    def batch_matmul(params, begin, end, scratch):
        p = view(BATCH_MATMUL_I8, params)
        columns = p.columns
        padded_depth = (p.depth + 3) & -4
        column_terms = scratch + buffer_bytes
        row_terms = column_terms + 4 * width
        packed = row_terms + 4 * p.block
        rows = packed + width * padded_depth
        packed_rest = int64(-1)
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.row_blocks)
            first = (tile - rest * p.row_blocks) * p.block
            batch = truncated_divide(rest, p.panels)
            panel = rest - batch * p.panels
            count = min(p.block, p.rows - first)
            channels = min(int64(width), columns - panel * width)
            b = p.b + i64(p.b_offsets)[batch] + panel * width * p.b_column
            if rest != packed_rest:
                pack_panel(p, packed, column_terms, b, channels, width, padded_depth)
                packed_rest = rest
            a = p.a + i64(p.a_offsets)[batch] + first * p.a_row
            pack_rows(p, rows, row_terms, a, count, padded_depth)
            product(
                p,
                rows,
                padded_depth,
                count,
                packed,
                column_terms,
                row_terms,
                0,
                padded_depth >> 2,
                p.output + (batch * p.rows + first) * columns + panel * width,
                columns,
                channels,
                scratch,
            )
        return 0

    return batch_matmul

"""Products of two computed int8 matrices: the body of batch_matmul_i8_6x32 and batch_matmul_i8_6x16.

sum (a - za) (b - zb) = sum (a + 128) b - (128 + za) sum b - zb sum a + depth za zb: the dot product of unsigned with
signed bytes, a term for each column and one for each row. All wraps modulo 2**32 as int32 does.
"""

from __future__ import annotations

from numba import int32, int64

from runtime.kernels.abi import i8, i32, i64, inline, kernel, truncated_divide, u8, view
from runtime.kernels.matmul_i8 import LANES, LINE, channels_epilogue, panel_product
from runtime.kernels.matmul_parameters import BATCH_MATMUL_I8


@inline
def pack_panel(p, target, terms, source, columns, width, padded_depth):
    """[depth / 4][width][4] from a matrix of any strides, and each column's term."""
    for i in range(padded_depth * width):
        i8(target)[i] = 0
    for n in range(columns):
        total = int64(0)
        at, to = source + n * p.b_column, i8(target + 4 * n)
        for k in range(p.depth):
            value = i8(at + k * p.b_row)[0]
            to[(k >> 2) * 4 * width + (k & 3)] = value
            total += value
        i32(terms)[n] = int32(p.depth * p.a_zero * p.b_zero - (128 + p.a_zero) * total)
    for n in range(columns, width):
        i32(terms)[n] = 0


@inline
def pack_rows(p, target, terms, source, rows, padded_depth):
    """[rows][depth] as bytes a + 128 from a matrix of any strides, and each row's term."""
    for i in range(rows):
        total = int64(0)
        at, to = source + i * p.a_row, u8(target + i * padded_depth)
        for k in range(p.depth):
            value = i8(at + k * p.a_column)[0]
            to[k] = value + 128
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
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.row_blocks)
            first = (tile - rest * p.row_blocks) * p.block
            batch = truncated_divide(rest, p.panels)
            panel = rest - batch * p.panels
            count = min(p.block, p.rows - first)
            channels = min(int64(width), columns - panel * width)
            b = p.b + i64(p.b_offsets)[batch] + panel * width * p.b_column
            pack_panel(p, packed, column_terms, b, channels, width, padded_depth)
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

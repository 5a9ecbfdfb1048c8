"""Products of two computed float32 matrices: the body of batch_matmul_f32_12x32 and batch_matmul_f32_6x16."""

from __future__ import annotations

from numba import float32

from runtime.kernels.abi import f32, i64, inline, kernel, truncated_divide, view
from runtime.kernels.matmul_f32 import LANES, LINE, panel_product
from runtime.kernels.matmul_parameters import BATCH_MATMUL_F32

INFINITY = float32(float("inf"))


@inline
def pack_panel(target, source, row_step, column_step, depth, columns, width):
    """[depth][width] from a matrix of any strides, zeros in the columns beyond."""
    for k in range(depth):
        row, at = f32(target + 4 * width * k), source + k * row_step
        for n in range(columns):
            row[n] = f32(at + n * column_step)[0]
        for n in range(columns, width):
            row[n] = float32(0)


@inline
def pack_rows(target, source, row_step, column_step, rows, depth):
    """[rows][depth] from a matrix of any strides."""
    for i in range(rows):
        row, at = f32(target + 4 * depth * i), source + i * row_step
        for k in range(depth):
            row[k] = f32(at + k * column_step)[0]


def batch_matmul_kernel(rows_at_once, vectors):
    """A kernel over BATCH_MATMUL_F32."""
    product = panel_product(rows_at_once, vectors)
    width = LANES * vectors

    @kernel
    def batch_matmul(params, begin, end, scratch):
        p = view(BATCH_MATMUL_F32, params)
        depth, columns = p.depth, p.columns
        bias = scratch + 2 * p.block * LINE * vectors
        packed = bias + 4 * width
        rows_room = packed + 4 * width * depth
        for n in range(width):
            f32(bias)[n] = float32(0)
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.row_blocks)
            first = (tile - rest * p.row_blocks) * p.block
            batch = truncated_divide(rest, p.panels)
            panel = rest - batch * p.panels
            count = min(p.block, p.rows - first)
            channels = min(width, columns - panel * width)
            b = p.b + i64(p.b_offsets)[batch] + panel * width * p.b_column
            pack_panel(packed, b, p.b_row, p.b_column, depth, channels, width)
            rows, stride = p.a + i64(p.a_offsets)[batch] + first * p.a_row, p.a_row
            if p.a_column != 4:
                pack_rows(rows_room, rows, p.a_row, p.a_column, count, depth)
                rows, stride = rows_room, 4 * depth
            product(
                p,
                rows,
                stride,
                count,
                packed,
                bias,
                p.output + 4 * ((batch * p.rows + first) * columns + panel * width),
                4 * columns,
                channels,
                -INFINITY,
                INFINITY,
                scratch,
            )
        return 0

    return batch_matmul

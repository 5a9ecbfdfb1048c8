"""int8 ops as tables of all their results: exact by construction, whatever the op computes."""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import f32, i8, kernel, truncated_divide, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.elementwise_parameters import BINARY_TABLE, UNARY_TABLE


@kernel
def lookup_i8(params, begin, end, scratch):
    """int8 -> int8."""
    p = view(UNARY_TABLE, params)
    x, out, table = i8(p.input), i8(p.output), i8(p.table + 128)
    for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
        out[i] = table[x[i]]
    return 0


@kernel
def lookup_i8_f32(params, begin, end, scratch):
    """int8 -> float32."""
    p = view(UNARY_TABLE, params)
    x, out, table = i8(p.input), f32(p.output), f32(p.table + 4 * 128)
    for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
        out[i] = table[x[i]]
    return 0


@kernel
def lookup_pair_i8(params, begin, end, scratch):
    """(int8, int8) -> int8, broadcasting as the float32 kernels do."""
    p = view(BINARY_TABLE, params)
    inner, a_step, b_step, chunk = p.inner, p.a_step, p.b_step, p.chunk
    table = i8(p.table + 257 * 128)
    for tile in range(begin, end):
        row = truncated_divide(tile, p.chunks)
        start = (tile - row * p.chunks) * chunk
        count = min(chunk, inner - start)
        a = i8(p.a + offset_of(row, p.outer_rank, p.outer, p.a_strides) + start * a_step)
        b = i8(p.b + offset_of(row, p.outer_rank, p.outer, p.b_strides) + start * b_step)
        out = i8(p.output + row * inner + start)
        for i in range(count):
            out[i] = table[256 * int64(a[a_step * i]) + int64(b[b_step * i])]
    return 0

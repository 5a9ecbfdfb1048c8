"""int8 and int16 ops as tables of all their results: exact by construction, whatever the op computes."""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import f32, i8, i16, kernel, truncated_divide, view
from runtime.kernels.elementwise import offset_of
from runtime.kernels.elementwise_parameters import BINARY_TABLE, UNARY_TABLE


def _lookup(given, zero, made, size):
    """A kernel from one type to another: table[zero] is what 0 gives, and `size` the bytes of an entry."""
    start = zero * size

    @kernel
    def lookup(params, begin, end, scratch):
        p = view(UNARY_TABLE, params)
        x, out, table = given(p.input), made(p.output), made(p.table + start)
        for i in range(begin * p.chunk, min(end * p.chunk, p.count)):
            out[i] = table[x[i]]
        return 0

    return lookup


lookup_i8 = _lookup(i8, 1 << 7, i8, 1)
lookup_i8_i16 = _lookup(i8, 1 << 7, i16, 2)
lookup_i8_f32 = _lookup(i8, 1 << 7, f32, 4)
lookup_i16 = _lookup(i16, 1 << 15, i16, 2)
lookup_i16_i8 = _lookup(i16, 1 << 15, i8, 1)
lookup_i16_f32 = _lookup(i16, 1 << 15, f32, 4)


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

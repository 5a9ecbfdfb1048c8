"""Binary float32 ops with broadcasting. A tile is a chunk of one innermost run; along a run an operand moves by one
element or stays.
"""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import f32, i64, inline, kernel, truncated_divide, view
from runtime.kernels.elementwise_parameters import BINARY


@inline
def offset_of(index, rank, sizes, strides):
    """Where outer element `index` (C order over `sizes`) starts."""
    offset = int64(0)
    for axis in range(rank - 1, -1, -1):
        size = i64(sizes)[axis]
        rest = truncated_divide(index, size)
        offset += (index - rest * size) * i64(strides)[axis]
        index = rest
    return offset


@inline
def clamp(value, low, high):
    """NaN stays NaN, as in numpy."""
    value = low if value < low else value
    return high if value > high else value


def _binary(compute):
    def run(params, begin, end, scratch):
        p = view(BINARY, params)
        low, high = float32(p.low), float32(p.high)
        inner, a_step, b_step, chunk = p.inner, p.a_step, p.b_step, p.chunk
        for tile in range(begin, end):
            row = truncated_divide(tile, p.chunks)
            start = (tile - row * p.chunks) * chunk
            count = min(chunk, inner - start)
            a = f32(p.a + 4 * (offset_of(row, p.outer_rank, p.outer, p.a_strides) + start * a_step))
            b = f32(p.b + 4 * (offset_of(row, p.outer_rank, p.outer, p.b_strides) + start * b_step))
            out = f32(p.output + 4 * (row * inner + start))
            if a_step == 1 and b_step == 1:
                for i in range(count):
                    out[i] = clamp(compute(a[i], b[i]), low, high)
            elif a_step == 1:
                right = b[0]
                for i in range(count):
                    out[i] = clamp(compute(a[i], right), low, high)
            else:
                left = a[0]
                for i in range(count):
                    out[i] = clamp(compute(left, b[b_step * i]), low, high)
        return 0

    return kernel(run)


@inline
def _maximum(a, b):
    return a if a > b or a != a else b


@inline
def _minimum(a, b):
    return a if a < b or a != a else b


add_f32 = _binary(inline(lambda a, b: a + b))
sub_f32 = _binary(inline(lambda a, b: a - b))
mul_f32 = _binary(inline(lambda a, b: a * b))
div_f32 = _binary(inline(lambda a, b: a / b))
squared_difference_f32 = _binary(inline(lambda a, b: (a - b) * (a - b)))
maximum_f32 = _binary(_maximum)
minimum_f32 = _binary(_minimum)
prelu_f32 = _binary(inline(lambda x, alpha: x if x > float32(0) or x != x else alpha * x))

"""Softmax of int16 along the last axis, by tables (schema.ops.softmax). Imports numba."""

from __future__ import annotations

from numba import int16, int64

from runtime.kernels.abi import i16, i64, inline, kernel, u8, view
from runtime.kernels.requantize import clamp, requantize_double
from runtime.kernels.softmax_masks import lets_anything_in, mask_of_row
from runtime.kernels.softmax_parameters import MASKED_I16, SOFTMAX_I16


@inline
def look_up(table, x):
    """On the line between two of 513 entries; x: any integer, taken to the nearest int16."""
    x = clamp(x, int64(-32768), int64(32767))
    entry = i64(table + 8 * (256 + (x >> 7)))
    return entry[0] + (((entry[1] - entry[0]) * (x & 127) + 64) >> 7)


@inline
def row_i16(p, row, mask):
    """mask: the address of its row, 0 where there is none."""
    count, every = p.count, mask == 0
    source, target = i16(p.input + 2 * count * row), i16(p.output + 2 * count * row)
    equal = not every and not lets_anything_in(mask, count)
    largest = int64(-32768)
    for i in range(count):
        x = int64(source[i]) if every or u8(mask)[i] != 0 else int64(-32768)
        largest = max(largest, x)
    total = int64(0)
    for i in range(count):
        difference = int64(0) if equal else int64(source[i]) - largest
        exponential = look_up(p.exponentials, requantize_double(difference, p.multiplier, p.shift) + 32767)
        exponential = exponential if every or equal or u8(mask)[i] != 0 else int64(0)
        target[i] = int16(exponential)
        total += exponential
    right = int64(0)  # the place of the highest bit
    while total >> (right + 1) > 0:
        right += 1
    shifted = ((total << (30 - right)) + (1 << 13)) >> 14
    inverse = look_up(p.inverses, shifted - (1 << 15) - (1 << 16))
    half = (int64(1) << right) >> 1
    for i in range(count):
        value = (int64(target[i]) * inverse + half) >> right
        target[i] = int16(clamp(value, int64(0), int64(32767)))


@kernel
def softmax_i16(params, begin, end, scratch):
    p = view(SOFTMAX_I16, params)
    for row in range(begin, end):
        row_i16(p, row, int64(0))
    return 0


@kernel
def masked_softmax_i16(params, begin, end, scratch):
    p = view(MASKED_I16, params)
    for row in range(begin, end):
        row_i16(p, row, mask_of_row(p, row))
    return 0

"""Softmax of int16 along the last axis, by tables (schema.ops.softmax). Imports numba."""

from __future__ import annotations

from numba import int16, int64

from runtime.kernels.abi import i16, i64, inline, kernel, view
from runtime.kernels.requantize import clamp, requantize_double
from runtime.kernels.softmax_parameters import SOFTMAX_I16


@inline
def look_up(table, x):
    """On the line between two of 513 entries; x: any integer, taken to the nearest int16."""
    x = clamp(x, int64(-32768), int64(32767))
    entry = i64(table + 8 * (256 + (x >> 7)))
    return entry[0] + (((entry[1] - entry[0]) * (x & 127) + 64) >> 7)


@kernel
def softmax_i16(params, begin, end, scratch):
    p = view(SOFTMAX_I16, params)
    count = p.count
    for row in range(begin, end):
        source, target = i16(p.input + 2 * count * row), i16(p.output + 2 * count * row)
        largest = int64(-32768)
        for i in range(count):
            largest = max(largest, int64(source[i]))
        total = int64(0)
        for i in range(count):
            difference = requantize_double(int64(source[i]) - largest, p.multiplier, p.shift)
            exponential = look_up(p.exponentials, difference + 32767)
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
    return 0

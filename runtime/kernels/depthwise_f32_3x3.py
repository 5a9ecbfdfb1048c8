"""3x3 depthwise convolution in float32: four windows side by side at once, some channels of them after each other.

Where windows reach beyond the input, the addresses of their pixels are first written to a table, those outside being of
zeros. Imports numba.
"""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import i64, inline, kernel, truncated_divide, view
from runtime.kernels.depthwise_parameters import DEPTHWISE_F32, TABLE_BYTES
from runtime.simd.vector import F32x16, fma, load, load_first, select, splat, store, store_first, zero

LANES = 16
LINE = 64  # bytes of a vector
TAPS = 3
WINDOWS = 4  # at once
CHANNELS = 128  # after each other, so that what four windows read stays in the first-level cache for the next four


@inline
def in_rows(table, row_0, row_1, row_2, pixel, column):
    """The addresses of a column's three pixels."""
    return row_0 + column * pixel, row_1 + column * pixel, row_2 + column * pixel


@inline
def in_table(table, row_0, row_1, row_2, pixel, column):
    at = i64(table + 8 * TAPS * column)
    return at[0], at[1], at[2]


def channels_of_windows(windows, stride, addresses, take, write):
    """Device function: channels `first` to `end` of `windows` windows, whose first column is number 0.

    take(address, count) loads, write(address, value, count) stores, `count` of 16 channels.
    """

    @inline
    def window(table, row_0, row_1, row_2, pixel, column, at, weights, step, sums, count):
        for tap in range(TAPS):  # what several windows load of a column is loaded once
            a, b, c = addresses(table, row_0, row_1, row_2, pixel, column + tap)
            w = weights + tap * step
            sums = fma(take(a + at, count), load(F32x16, w), sums)
            sums = fma(take(b + at, count), load(F32x16, w + TAPS * step), sums)
            sums = fma(take(c + at, count), load(F32x16, w + 2 * TAPS * step), sums)
        return sums

    @inline
    def run(p, table, row_0, row_1, row_2, first, end, target, pixel, low, high):
        step = ((p.channels + LANES - 1) & -LANES) * 4
        in_pixel, count = p.channels * 4, end - first
        for channel in range(first, end, LANES):
            at = 4 * channel
            weights, bias = p.weights + at, load(F32x16, p.bias + at)
            a = window(table, row_0, row_1, row_2, in_pixel, 0, at, weights, step, bias, count)
            if windows == WINDOWS:
                b = window(table, row_0, row_1, row_2, in_pixel, stride, at, weights, step, bias, count)
                c = window(table, row_0, row_1, row_2, in_pixel, 2 * stride, at, weights, step, bias, count)
                d = window(table, row_0, row_1, row_2, in_pixel, 3 * stride, at, weights, step, bias, count)
                write(target + at + pixel, clamp(b, low, high), count)
                write(target + at + 2 * pixel, clamp(c, low, high), count)
                write(target + at + 3 * pixel, clamp(d, low, high), count)
            write(target + at, clamp(a, low, high), count)

    return run


@inline
def clamp(value, low, high):
    value = select(value < low, low, value)
    return select(value > high, high, value)


@inline
def take_all(address, count):
    return load(F32x16, address)


@inline
def take_first(address, count):
    return load_first(F32x16, address, count)


@inline
def write_all(address, value, count):
    store(address, value)


@inline
def write_first(address, value, count):
    store_first(address, value, count)


def windows_of_stride(stride):
    """Device function: channels from `channel` on, CHANNELS at most, of the pixels of a line from `x` on; gives of how
    many pixels.
    """
    inside = channels_of_windows(WINDOWS, stride, in_rows, take_all, write_all)
    some = channels_of_windows(WINDOWS, stride, in_table, take_all, write_all)
    some_first = channels_of_windows(WINDOWS, stride, in_table, take_first, write_first)
    one = channels_of_windows(1, stride, in_table, take_all, write_all)
    one_first = channels_of_windows(1, stride, in_table, take_first, write_first)

    @inline
    def run(p, table, row_0, row_1, row_2, channel, x, target, pixel, low, high):
        end = min(channel + CHANNELS, p.channels)
        whole = end & -LANES
        windows = int64(WINDOWS) if p.out_w >= WINDOWS else int64(1)
        first, columns = x * stride - p.pad_w, (windows - 1) * stride + TAPS
        at = first * p.channels * 4
        done = channel
        if row_0 != 0 and row_1 != 0 and row_2 != 0 and windows != 1 and first >= 0 and first + columns <= p.in_w:
            inside(p, table, row_0 + at, row_1 + at, row_2 + at, done, whole, target, pixel, low, high)
            done = whole
        if done < end:
            write_table(p, table, row_0, row_1, row_2, first, columns)
            if windows == 1:
                one(p, table, row_0, row_1, row_2, done, whole, target, pixel, low, high)
                if whole < end:
                    one_first(p, table, row_0, row_1, row_2, whole, end, target, pixel, low, high)
            else:
                some(p, table, row_0, row_1, row_2, done, whole, target, pixel, low, high)
                if whole < end:
                    some_first(p, table, row_0, row_1, row_2, whole, end, target, pixel, low, high)
        return windows

    return run


windows_of_stride_1, windows_of_stride_2 = windows_of_stride(1), windows_of_stride(2)


@inline
def write_table(p, table, row_0, row_1, row_2, first, columns):
    """The addresses of `columns` columns from `first` on."""
    zeros = table + TABLE_BYTES
    for column in range(columns):
        x = first + column
        at, inside = i64(table + 8 * TAPS * column), x >= 0 and x < p.in_w
        x *= p.channels * 4
        at[0] = row_0 + x if inside and row_0 != 0 else zeros
        at[1] = row_1 + x if inside and row_1 != 0 else zeros
        at[2] = row_2 + x if inside and row_2 != 0 else zeros


@inline
def clear(p, room):
    """Prepare `room` for the other functions: TABLE_BYTES and 4 bytes for each channel, rounded up to whole vectors."""
    for at in range(0, p.channels * 4, LINE):
        store(room + TABLE_BYTES + at, zero(F32x16))


@inline
def line_of(p, lines, count, shift, y):
    """The address of line `y` of the input, 0 outside of it."""
    if y < 0 or y >= p.in_h:
        return int64(0)
    place = y + shift
    return lines + (place - truncated_divide(place, count) * count) * p.in_w * p.channels * 4


@inline
def depthwise_line(p, lines, count, shift, row, target, pixel, room):
    """Row `row` of an image's outputs, to `target`, `pixel` bytes from pixel to pixel.

    lines: where `count` lines are: line y of the input is number y + shift, modulo count. room: see `clear`.
    """
    y = row * p.stride_h - p.pad_h
    row_0 = line_of(p, lines, count, shift, y)
    row_1 = line_of(p, lines, count, shift, y + p.dilation_h)
    row_2 = line_of(p, lines, count, shift, y + 2 * p.dilation_h)
    low, high = splat(F32x16, float32(p.low)), splat(F32x16, float32(p.high))
    for channel in range(0, p.channels, CHANNELS):
        x = int64(0)
        while x < p.out_w:
            if p.out_w >= WINDOWS:
                x = min(x, p.out_w - WINDOWS)  # the last windows may be computed once more
            to = target + x * pixel
            if p.stride_w == 1:
                x += windows_of_stride_1(p, room, row_0, row_1, row_2, channel, x, to, pixel, low, high)
            else:
                x += windows_of_stride_2(p, room, row_0, row_1, row_2, channel, x, to, pixel, low, high)


@inline
def depthwise_row(p, row, target, pixel, room):
    """Row `row` of all images' outputs, as depthwise_line."""
    batch = truncated_divide(row, p.out_h)
    image = p.input + batch * p.in_h * p.in_w * p.channels * 4
    depthwise_line(p, image, p.in_h, int64(0), row - batch * p.out_h, target, pixel, room)


@kernel
def depthwise_f32_3x3(params, begin, end, scratch):
    p = view(DEPTHWISE_F32, params)
    clear(p, scratch)
    pixel = p.channels * 4
    for tile in range(begin, end):
        depthwise_row(p, tile, p.output + tile * p.out_w * pixel, pixel, scratch)
    return 0

"""3x3 depthwise convolution in float32: every column of the input is loaded once for all windows in it.

Imports numba.
"""

from __future__ import annotations

from numba import float32, int64

from runtime.kernels.abi import inline, kernel, truncated_divide, view
from runtime.kernels.depthwise_parameters import DEPTHWISE_F32
from runtime.simd.vector import F32x16, fma, load, load_first, select, splat, store, store_first, zero

LANES = 16
LINE = 64  # bytes of a vector


@inline
def row_of(p, lines, count, shift, zeros, y):
    """(address, bytes between pixels) of a row of the input, outside of it of zeros."""
    if y >= 0 and y < p.in_h:
        place = y + shift
        place -= truncated_divide(place, count) * count
        return lines + place * p.in_w * p.channels * 4, p.channels * 4
    return zeros, int64(0)


def row_of_outputs(take, write):
    """Device function: one row of 16 channels. take(address, count) loads, write(p, value, target, count) stores."""

    @inline
    def run(p, row_0, pixel_0, row_1, pixel_1, row_2, pixel_2, weights, bias, target, pixel, count):
        step = ((p.channels + LANES - 1) & -LANES) * 4
        w_00, w_01, w_02 = load(F32x16, weights), load(F32x16, weights + step), load(F32x16, weights + 2 * step)
        w_10, w_11, w_12 = (
            load(F32x16, weights + 3 * step),
            load(F32x16, weights + 4 * step),
            load(F32x16, weights + 5 * step),
        )
        w_20, w_21, w_22 = (
            load(F32x16, weights + 6 * step),
            load(F32x16, weights + 7 * step),
            load(F32x16, weights + 8 * step),
        )
        start = load(F32x16, bias)
        old = last = start  # the sums of the windows that this column is the third, and the second of
        skipped = int64(2)  # columns to go until a window is complete
        for column in range((p.out_w - 1) * p.stride_w + 3):
            x = column - p.pad_w
            if x >= 0 and x < p.in_w:
                a = take(row_0 + x * pixel_0, count)
                b = take(row_1 + x * pixel_1, count)
                c = take(row_2 + x * pixel_2, count)
                old = fma(c, w_22, fma(b, w_12, fma(a, w_02, old)))
                last = fma(c, w_21, fma(b, w_11, fma(a, w_01, last)))
                new = fma(c, w_20, fma(b, w_10, fma(a, w_00, start)))
            else:
                new = start
            if skipped == 0:
                write(p, old, target, count)
                target += pixel
                skipped = p.stride_w
            skipped -= 1
            old, last = last, new

    return run


@inline
def clamp(p, value):
    low, high = splat(F32x16, float32(p.low)), splat(F32x16, float32(p.high))
    value = select(value < low, low, value)
    return select(value > high, high, value)


whole = row_of_outputs(
    inline(lambda address, count: load(F32x16, address)),
    inline(lambda p, value, target, count: store(target, clamp(p, value))),
)
part = row_of_outputs(
    inline(lambda address, count: load_first(F32x16, address, count)),
    inline(lambda p, value, target, count: store_first(target, clamp(p, value), count)),
)


@inline
def depthwise_line(p, lines, count, shift, row, target, pixel, zeros):
    """Row `row` of an image's outputs, as depthwise_row, from `lines` of which there are `count`: line y of the input
    is number y + shift, modulo count.
    """
    y = row * p.stride_h - p.pad_h
    row_0, pixel_0 = row_of(p, lines, count, shift, zeros, y)
    row_1, pixel_1 = row_of(p, lines, count, shift, zeros, y + p.dilation_h)
    row_2, pixel_2 = row_of(p, lines, count, shift, zeros, y + 2 * p.dilation_h)
    for channel in range(0, p.channels, LANES):
        at, count = 4 * channel, p.channels - channel
        a = row_0 + at if pixel_0 != 0 else zeros
        b = row_1 + at if pixel_1 != 0 else zeros
        c = row_2 + at if pixel_2 != 0 else zeros
        weights, bias, to = p.weights + at, p.bias + at, target + at
        if count >= LANES:
            whole(p, a, pixel_0, b, pixel_1, c, pixel_2, weights, bias, to, pixel, count)
        else:
            part(p, a, pixel_0, b, pixel_1, c, pixel_2, weights, bias, to, pixel, count)


@inline
def depthwise_row(p, row, target, pixel, zeros):
    """Row `row` of all images' outputs, to `target`, `pixel` bytes from pixel to pixel. zeros: where 64 bytes are 0."""
    batch = truncated_divide(row, p.out_h)
    image = p.input + batch * p.in_h * p.in_w * p.channels * 4
    depthwise_line(p, image, p.in_h, int64(0), row - batch * p.out_h, target, pixel, zeros)


@kernel
def depthwise_f32_3x3(params, begin, end, scratch):
    p = view(DEPTHWISE_F32, params)
    store(scratch, zero(F32x16))
    pixel = p.channels * 4
    for tile in range(begin, end):
        depthwise_row(p, tile, p.output + tile * p.out_w * pixel, pixel, scratch)
    return 0

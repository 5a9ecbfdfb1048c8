"""Depthwise convolution in int8 with dot product instructions. Imports numba.

The taps of a column that belong to one channel are brought together, four at a time, once for each row of outputs;
windows that share columns then share that work. Bytes are multiplied as x + 128; the bias holds the correction.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, kernel, truncated_divide, view
from runtime.kernels.depthwise_parameters import DEPTHWISE_QUADS_I8
from runtime.kernels.requantize_lanes import factor_bytes, requantize_lanes
from runtime.simd.lanes import dot_u8_s8, interleave_high, interleave_low
from runtime.simd.vector import I8x64, I16x32, I32x16, bitcast, load, load_first, splat, store, store_first, zero

CHANNELS = 64  # at a time
LINE = 64  # bytes of a vector
QUADS = 4 * LINE  # four taps of 64 channels


@inline
def take(address, count):
    """64 bytes as x + 128; only `count` of them are read."""
    value = load(I8x64, address) if count >= CHANNELS else load_first(I8x64, address, count)
    return value ^ splat(I8x64, -128)


@inline
def bring_together(target, a, b, c, d):
    """Store four I8x64 so that the four bytes of a channel follow each other, in lane order."""
    low, high = bitcast(I16x32, interleave_low(a, b)), bitcast(I16x32, interleave_high(a, b))
    more_low, more_high = bitcast(I16x32, interleave_low(c, d)), bitcast(I16x32, interleave_high(c, d))
    store(target, interleave_low(low, more_low))
    store(target + LINE, interleave_high(low, more_low))
    store(target + 2 * LINE, interleave_low(high, more_high))
    store(target + 3 * LINE, interleave_high(high, more_high))


@inline
def row_of(p, image, fill, start_y, ky):
    """(address, bytes between pixels) of the input's row at tap `ky`: what is outside is one vector of padding."""
    y = start_y + ky * p.dilation_h
    if ky < p.kernel_h and y >= 0 and y < p.in_h:
        return image + y * p.in_w * p.channels, p.channels
    return fill, int64(0)


@inline
def columns_of_taps(p, image, fill, start_y, first_ky, count, target, step):
    """All columns that the row of outputs needs, `step` bytes apart, of the taps `first_ky` and the three after it."""
    row_0, pixel_0 = row_of(p, image, fill, start_y, first_ky)
    row_1, pixel_1 = row_of(p, image, fill, start_y, first_ky + 1)
    row_2, pixel_2 = row_of(p, image, fill, start_y, first_ky + 2)
    row_3, pixel_3 = row_of(p, image, fill, start_y, first_ky + 3)
    outside = load(I8x64, fill) ^ splat(I8x64, -128)
    columns = (p.out_w - 1) * p.stride_w + (p.kernel_w - 1) * p.dilation_w + 1
    for _ in range(min(p.pad_w, columns)):
        bring_together(target, outside, outside, outside, outside)
        target += step
    inside = min(p.in_w, columns - p.pad_w)
    for x in range(inside):
        bring_together(
            target,
            take(row_0 + x * pixel_0, count),
            take(row_1 + x * pixel_1, count),
            take(row_2 + x * pixel_2, count),
            take(row_3 + x * pixel_3, count),
        )
        target += step
    for _ in range(columns - p.pad_w - max(inside, 0)):
        bring_together(target, outside, outside, outside, outside)
        target += step


@inline
def write(p, a, b, c, d, factors, vector_bytes, target, count):
    value = requantize_lanes(
        p, a, b, c, d, factors, factors + vector_bytes, factors + 2 * vector_bytes, factors + 3 * vector_bytes
    )
    if count >= CHANNELS:
        store(target, value)
    else:
        store_first(target, value, count)


@inline
def row_of_outputs(p, columns, step, quads, weights, factors, vector_bytes, target, count):
    """Two pixels at a time, so that weights are loaded half as often."""
    dilation, stride = p.dilation_w * step, p.stride_w * step
    x = int64(0)
    while x < p.out_w:
        second = int64(1) if x + 1 < p.out_w else int64(0)
        a = b = c = d = a_1 = b_1 = c_1 = d_1 = zero(I32x16)
        w = weights
        for kx in range(p.kernel_w):
            at = columns + x * stride + kx * dilation
            for _ in range(quads):
                at_1 = at + second * stride
                a = dot_u8_s8(a, load(I32x16, at), load(I32x16, w))
                b = dot_u8_s8(b, load(I32x16, at + LINE), load(I32x16, w + LINE))
                c = dot_u8_s8(c, load(I32x16, at + 2 * LINE), load(I32x16, w + 2 * LINE))
                d = dot_u8_s8(d, load(I32x16, at + 3 * LINE), load(I32x16, w + 3 * LINE))
                a_1 = dot_u8_s8(a_1, load(I32x16, at_1), load(I32x16, w))
                b_1 = dot_u8_s8(b_1, load(I32x16, at_1 + LINE), load(I32x16, w + LINE))
                c_1 = dot_u8_s8(c_1, load(I32x16, at_1 + 2 * LINE), load(I32x16, w + 2 * LINE))
                d_1 = dot_u8_s8(d_1, load(I32x16, at_1 + 3 * LINE), load(I32x16, w + 3 * LINE))
                at += QUADS
                w += QUADS
        write(p, a, b, c, d, factors, vector_bytes, target + x * p.channels, count)
        if second != 0:
            write(p, a_1, b_1, c_1, d_1, factors, vector_bytes, target + (x + 1) * p.channels, count)
        x += 2


@kernel
def depthwise_i8_quads(params, begin, end, scratch):
    p = view(DEPTHWISE_QUADS_I8, params)
    quads = (p.kernel_h + 3) >> 2
    step = quads * QUADS
    vector_bytes = factor_bytes(p)
    fill, columns = scratch, scratch + LINE
    store(fill, splat(I8x64, p.input_zero))
    for tile in range(begin, end):
        batch = truncated_divide(tile, p.out_h)
        start_y = (tile - batch * p.out_h) * p.stride_h - p.pad_h
        image = p.input + batch * p.in_h * p.in_w * p.channels
        target = p.output + tile * p.out_w * p.channels
        for channel in range(0, p.channels, CHANNELS):
            count = min(p.channels - channel, int64(CHANNELS))
            for q in range(quads):
                columns_of_taps(p, image + channel, fill, start_y, 4 * q, count, columns + q * QUADS, step)
            row_of_outputs(
                p,
                columns,
                step,
                quads,
                p.weights + channel * p.kernel_w * quads * 4,
                p.factors + (channel >> 4) * vector_bytes,
                vector_bytes,
                target + channel,
                count,
            )
    return 0

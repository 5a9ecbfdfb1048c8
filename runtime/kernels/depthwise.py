"""What the depthwise convolutions of all dtypes share: the walk over rows, channels and pixels. Imports numba."""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, kernel, truncated_divide, view

LANES = 16


@inline
def first_tap(start, dilation):
    """The first tap k with start + k * dilation >= 0."""
    return truncated_divide(dilation - 1 - start, dilation) if start < 0 else int64(0)


@inline
def end_of_taps(start, dilation, size, taps):
    """The number after the last tap k < taps with start + k * dilation < size."""
    inside = truncated_divide(size - start + dilation - 1, dilation) if start < size else int64(0)
    return min(inside, taps)


def depthwise_kernel(block, pointer, item_size, start, multiply_add, multiply_add_first, finish):
    """A kernel over `block` for elements of `item_size` bytes, 16 channels at a time.

    start(p, channel) -> accumulators; multiply_add(p, acc, x, w) -> acc, with addresses of 16 inputs and weights;
    multiply_add_first(p, acc, x, w, count) reads only `count` inputs; finish(p, acc, channel, target, count) writes
    `count` outputs.
    """

    @inline
    def repeat_channels(p, source, target, pixels):
        """Each channel of `pixels` pixels `multiplier` times."""
        of, to = pointer(source), pointer(target)
        channels = truncated_divide(p.channels, p.multiplier)
        for i in range(pixels * channels):
            for q in range(p.multiplier):
                to[i * p.multiplier + q] = of[i]

    def channels_of_row(add):
        @inline
        def run(p, rows, row_step, y_first, y_end, channel, count, target):
            pixel = p.channels * item_size
            at = channel * item_size
            weight_step = ((p.channels + LANES - 1) & -LANES) * item_size
            weights = p.weights + at
            x_step = p.dilation_w * pixel
            for x in range(p.out_w):
                start_x = x * p.stride_w - p.pad_w
                tap_first = first_tap(start_x, p.dilation_w)
                tap_end = end_of_taps(start_x, p.dilation_w, p.in_w, p.kernel_w)
                acc = start(p, channel)
                for ky in range(y_first, y_end):
                    source = rows + ky * row_step + start_x * pixel + at
                    weight = weights + ky * p.kernel_w * weight_step
                    for kx in range(tap_first, tap_end):
                        acc = add(p, acc, source + kx * x_step, weight + kx * weight_step, count)
                finish(p, acc, channel, target + x * pixel + at, count)

        return run

    whole = channels_of_row(inline(lambda p, acc, x, w, count: multiply_add(p, acc, x, w)))
    part = channels_of_row(multiply_add_first)

    @kernel
    def depthwise(params, begin, end, scratch):
        p = view(block, params)
        in_pixel = truncated_divide(p.channels, p.multiplier) * item_size
        out_row = p.out_w * p.channels * item_size
        for tile in range(begin, end):
            batch = truncated_divide(tile, p.out_h)
            start_y = (tile - batch * p.out_h) * p.stride_h - p.pad_h
            y_first = first_tap(start_y, p.dilation_h)
            y_end = end_of_taps(start_y, p.dilation_h, p.in_h, p.kernel_h)
            in_row = p.in_w * in_pixel
            rows = p.input + (batch * p.in_h + start_y) * in_row
            row_step = p.dilation_h * in_row
            if p.multiplier != 1:
                wide_row = p.in_w * p.channels * item_size
                for ky in range(y_first, y_end):
                    repeat_channels(p, rows + ky * row_step, scratch + ky * wide_row, p.in_w)
                rows, row_step = scratch, wide_row
            target = p.output + tile * out_row
            for channel in range(0, p.channels, LANES):
                count = p.channels - channel
                if count >= LANES:
                    whole(p, rows, row_step, y_first, y_end, channel, int64(LANES), target)
                else:
                    part(p, rows, row_step, y_first, y_end, channel, count, target)
        return 0

    return depthwise

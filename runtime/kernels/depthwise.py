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
    if start + (taps - 1) * dilation < size:
        return taps
    return truncated_divide(size - start + dilation - 1, dilation) if start < size else int64(0)


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
            weights, rows, target = p.weights + at, rows + at, target + at
            tap_step = p.dilation_w * pixel
            step = p.stride_w * pixel
            # Pixels whose windows lie inside along x are computed four at a time.
            inside = truncated_divide(p.pad_w + p.stride_w - 1, p.stride_w)
            last_start = p.in_w - 1 - (p.kernel_w - 1) * p.dilation_w
            inside_end = truncated_divide(last_start + p.pad_w, p.stride_w) + 1 if last_start + p.pad_w >= 0 else 0
            inside_end = min(inside_end, p.out_w)
            x = int64(0)
            while x < p.out_w:
                start_x = x * p.stride_w - p.pad_w
                if x >= inside and x + 4 <= inside_end:
                    acc = acc_1 = acc_2 = acc_3 = start(p, channel)
                    for ky in range(y_first, y_end):
                        source = rows + ky * row_step + start_x * pixel
                        weight = weights + ky * p.kernel_w * weight_step
                        for _ in range(p.kernel_w):
                            acc = add(p, acc, source, weight, count)
                            acc_1 = add(p, acc_1, source + step, weight, count)
                            acc_2 = add(p, acc_2, source + 2 * step, weight, count)
                            acc_3 = add(p, acc_3, source + 3 * step, weight, count)
                            source += tap_step
                            weight += weight_step
                    finish(p, acc, channel, target + x * pixel, count)
                    finish(p, acc_1, channel, target + (x + 1) * pixel, count)
                    finish(p, acc_2, channel, target + (x + 2) * pixel, count)
                    finish(p, acc_3, channel, target + (x + 3) * pixel, count)
                    x += 4
                else:
                    tap_first = first_tap(start_x, p.dilation_w)
                    tap_end = end_of_taps(start_x, p.dilation_w, p.in_w, p.kernel_w)
                    acc = start(p, channel)
                    for ky in range(y_first, y_end):
                        source = rows + ky * row_step + start_x * pixel
                        weight = weights + ky * p.kernel_w * weight_step
                        for kx in range(tap_first, tap_end):
                            acc = add(p, acc, source + kx * tap_step, weight + kx * weight_step, count)
                    finish(p, acc, channel, target + x * pixel, count)
                    x += 1

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

"""What the poolings share: the walk over rows, channels, pixels and the taps that are inside. Imports numba."""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, kernel, truncated_divide, view
from runtime.kernels.depthwise import end_of_taps, first_tap
from runtime.kernels.pooling_parameters import POOL

LANES = 16


def channels_pooled(item_size, start, combine, finish):
    """Device function: the channels of one vector, for a row of outputs. See `pool_kernel`."""

    @inline
    def pool_channels(p, planes, z_first, z_end, y_first, y_end, target, count):
        pixel = p.channels * item_size
        row = p.in_w * pixel
        for x in range(p.out_w):
            start_x = x * p.stride_w - p.pad_w
            x_first, x_end = first_tap(start_x, 1), end_of_taps(start_x, 1, p.in_w, p.kernel_w)
            acc = start()
            for kz in range(z_first, z_end):
                for ky in range(y_first, y_end):
                    source = planes + (kz * p.in_h + ky) * row + start_x * pixel
                    for kx in range(x_first, x_end):
                        acc = combine(acc, source + kx * pixel, count)
            taps = (z_end - z_first) * (y_end - y_first) * (x_end - x_first)
            finish(p, acc, taps, target + x * pixel, count)

    return pool_channels


def pool_kernel(item_size, start, combine, finish, wide_lanes=0, wide=None):
    """A kernel over POOL for elements of `item_size` bytes, 16 channels at a time.

    start() -> accumulators; combine(acc, address, count) takes in `count` channels of one pixel; finish(p, acc, taps,
    target, count) writes what `taps` pixels gave. wide: the same three for `wide_lanes` channels at a time, which take
    those that they can.
    """
    pool_channels = channels_pooled(item_size, start, combine, finish)
    pool_wide = channels_pooled(item_size, *(wide or (start, combine, finish)))
    step = wide_lanes or LANES

    @kernel
    def pool(params, begin, end, scratch):
        p = view(POOL, params)
        pixel = p.channels * item_size
        for tile in range(begin, end):
            rest = truncated_divide(tile, p.out_h)
            start_y = (tile - rest * p.out_h) * p.stride_h - p.pad_h
            batch = truncated_divide(rest, p.out_d)
            start_z = (rest - batch * p.out_d) * p.stride_d - p.pad_d
            z_first, z_end = first_tap(start_z, 1), end_of_taps(start_z, 1, p.in_d, p.kernel_d)
            y_first, y_end = first_tap(start_y, 1), end_of_taps(start_y, 1, p.in_h, p.kernel_h)
            planes = p.input + ((batch * p.in_d + start_z) * p.in_h + start_y) * p.in_w * pixel
            target = p.output + tile * p.out_w * pixel
            wide = truncated_divide(p.channels, step) * step
            for channel in range(0, wide, step):
                at = channel * item_size
                pool_wide(p, planes + at, z_first, z_end, y_first, y_end, target + at, int64(step))
            whole = p.channels & -LANES
            for channel in range(wide, whole, LANES):
                at = channel * item_size
                pool_channels(p, planes + at, z_first, z_end, y_first, y_end, target + at, int64(LANES))
            if whole < p.channels:
                at = whole * item_size
                pool_channels(p, planes + at, z_first, z_end, y_first, y_end, target + at, p.channels - whole)
        return 0

    return pool

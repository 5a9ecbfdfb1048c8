"""The windows of convolutions, copied into rows of a matrix (im2col) for a few output pixels at a time.

`p` is a view of a block with the slots of matmul_parameters.WINDOW_SLOTS. Imports numba.
"""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import i32, inline, truncated_divide, u8
from runtime.simd.vector import I8x16, I8x64, load, store


@inline
def plain_copy(target, source, size):
    """Copy `size` bytes."""
    while size >= 64:
        store(target, load(I8x64, source))
        source += 64
        target += 64
        size -= 64
    while size >= 16:
        store(target, load(I8x16, source))
        source += 16
        target += 16
        size -= 16
    while size >= 4:
        i32(target)[0] = i32(source)[0]
        source += 4
        target += 4
        size -= 4
    while size > 0:
        u8(target)[0] = u8(source)[0]
        source += 1
        target += 1
        size -= 1


@inline
def output_position(p, index):
    """(batch, z, y, x) of output pixel `index`."""
    rest = truncated_divide(index, p.out_w)
    plane = truncated_divide(rest, p.out_h)
    batch = truncated_divide(plane, p.out_d)
    return batch, plane - batch * p.out_d, rest - plane * p.out_h, index - rest * p.out_w


@inline
def next_position(p, batch, z, y, x):
    """The pixel after (batch, z, y, x)."""
    x += 1
    if x == p.out_w:
        x = int64(0)
        y += 1
        if y == p.out_h:
            y = int64(0)
            z += 1
            if z == p.out_d:
                z = int64(0)
                batch += 1
    return batch, z, y, x


def window_gatherer(item_size, copy, fill):
    """Device functions (gather_windows, gather_transposed_windows) for elements of `item_size` bytes.

    copy(target, source, size) moves bytes, fill(target, size, padding) writes what lies outside of the input.
    """

    @inline
    def gather_taps(p, target, image, z, y, x, padding):
        """The taps along x of one row of the window, which starts at (z, y, x) of the input."""
        size = p.group_channels * item_size
        pixel = p.in_c * item_size
        if z < 0 or z >= p.in_d or y < 0 or y >= p.in_h:
            fill(target, size * p.kernel_w, padding)
            return
        row = image + ((z * p.in_h + y) * p.in_w) * pixel
        if p.dilation_w == 1 and pixel == size and x >= 0 and x + p.kernel_w <= p.in_w:
            copy(target, row + x * pixel, size * p.kernel_w)
            return
        for _ in range(p.kernel_w):
            if x >= 0 and x < p.in_w:
                copy(target, row + x * pixel, size)
            else:
                fill(target, size, padding)
            x += p.dilation_w
            target += size

    @inline
    def gather_windows(p, target, stride, group, first, count, padding):
        """Rows `first` to `first + count` of the matrix of windows of one group, `stride` bytes apart."""
        taps = p.group_channels * p.kernel_w * item_size
        image_size = p.in_d * p.in_h * p.in_w * p.in_c * item_size
        batch, z, y, x = output_position(p, first)
        for i in range(count):
            image = p.input + batch * image_size + group * p.group_channels * item_size
            at = target + i * stride
            for kz in range(p.kernel_d):
                in_z = z * p.stride_d - p.pad_d + kz * p.dilation_d
                for ky in range(p.kernel_h):
                    in_y = y * p.stride_h - p.pad_h + ky * p.dilation_h
                    gather_taps(p, at, image, in_z, in_y, x * p.stride_w - p.pad_w, padding)
                    at += taps
            batch, z, y, x = next_position(p, batch, z, y, x)

    @inline
    def source_of(position, stride):
        """The input's index if `position` is a multiple of the stride, else -1."""
        index = truncated_divide(position, stride)
        return index if position >= 0 and index * stride == position else int64(-1)

    @inline
    def gather_transposed_windows(p, target, stride, group, first, count, padding):
        """As gather_windows for a transposed convolution: tap k of output o reads (o + pad - k * dilation) / stride."""
        size = p.group_channels * item_size
        pixel = p.in_c * item_size
        image_size = p.in_d * p.in_h * p.in_w * pixel
        batch, z, y, x = output_position(p, first)
        for i in range(count):
            image = p.input + batch * image_size + group * p.group_channels * item_size
            at = target + i * stride
            for kz in range(p.kernel_d):
                in_z = source_of(z + p.pad_d - kz * p.dilation_d, p.stride_d)
                for ky in range(p.kernel_h):
                    in_y = source_of(y + p.pad_h - ky * p.dilation_h, p.stride_h)
                    for kx in range(p.kernel_w):
                        in_x = source_of(x + p.pad_w - kx * p.dilation_w, p.stride_w)
                        inside = in_z >= 0 and in_z < p.in_d and in_y >= 0 and in_y < p.in_h
                        if inside and in_x >= 0 and in_x < p.in_w:
                            copy(at, image + ((in_z * p.in_h + in_y) * p.in_w + in_x) * pixel, size)
                        else:
                            fill(at, size, padding)
                        at += size
            batch, z, y, x = next_position(p, batch, z, y, x)

    return gather_windows, gather_transposed_windows

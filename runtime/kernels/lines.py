"""Lines of an image with its padding, so that all windows of a convolution have one shape. Imports numba."""

from __future__ import annotations

from runtime.kernels.abi import inline


def line_copier(item_size, copy, fill):
    """Device function copy_lines for elements of `item_size` bytes.

    copy(target, source, size) moves bytes, fill(target, size, value) sets them.
    """

    @inline
    def copy_lines(p, target, image, first, count):
        """`count` lines of `line_bytes` from line `first` on, which may lie outside, with `padding` around it."""
        before, row = p.pad_w * p.in_c * item_size, p.in_w * p.in_c * item_size
        inside = min(row, p.line_bytes - before)
        for y in range(first, first + count):
            if y < 0 or y >= p.in_h:
                fill(target, p.line_bytes, p.padding)
            else:
                fill(target, before, p.padding)
                copy(target + before, image + y * row, inside)
                fill(target + before + inside, p.line_bytes - before - inside, p.padding)
            target += p.line_bytes

    return copy_lines

"""Rows of the masks of softmaxes. Imports numba."""

from __future__ import annotations

from numba import int64

from runtime.kernels.abi import inline, truncated_divide, u8


@inline
def mask_of_row(p, row):
    """The address of the bytes that say what counts in a vector. p: a block with the slots of MASK."""
    outside = truncated_divide(row, p.inner)
    outer = truncated_divide(outside, p.middle)
    index = outer * p.outer_stride + (outside - outer * p.middle) * p.middle_stride
    address = p.mask + p.width * (index + (row - outside * p.inner) * p.inner_stride)
    return address if p.whole == 0 else p.whole + p.count * int64(u8(address)[0])


@inline
def lets_anything_in(mask, count):
    found = 0
    for i in range(count):
        found |= int64(u8(mask)[i])
    return found != 0

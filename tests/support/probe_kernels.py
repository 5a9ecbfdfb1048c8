"""Kernels for tests of the native layer."""

from numba import float32

from runtime.kernels.abi import f32, i64, inline, kernel, u8, view
from tests.support.probe_parameters import PROBE


@inline
def scaled_plus_one(x, scale):
    return x * scale + float32(1)


@kernel
def probe_scale(params, begin, end, scratch):
    """target = source * scale + 1, `row` elements per tile."""
    p = view(PROBE, params)
    source, target, scale = f32(p.source), f32(p.target), float32(p.scale)
    for i in range(begin * p.row, end * p.row):
        target[i] = scaled_plus_one(source[i], scale)
    return 0


@kernel
def probe_transpose(params, begin, end, scratch):
    """target[row, row] = source.T: each tile reads what all tiles of a kernel before have written."""
    p = view(PROBE, params)
    source, target, row = f32(p.source), f32(p.target), p.row
    for i in range(begin, end):
        for j in range(row):
            target[i * row + j] = source[j * row + i]
    return 0


@kernel
def probe_copy(params, begin, end, scratch):
    """A loop that LLVM would like to make a call of memcpy."""
    p = view(PROBE, params)
    source, target = f32(p.source), f32(p.target)
    for i in range(begin * p.row, end * p.row):
        target[i] = source[i]
    return 0


@kernel
def probe_clear(params, begin, end, scratch):
    """A loop that LLVM would like to make a call of memset."""
    p = view(PROBE, params)
    target = f32(p.target)
    for i in range(begin * p.row, end * p.row):
        target[i] = float32(0)
    return 0


@kernel
def probe_count(params, begin, end, scratch):
    """Adds 1 to a tile's int64."""
    p = view(PROBE, params)
    for i in range(begin, end):
        i64(p.target)[i] += 1
    return 0


@kernel
def probe_fail(params, begin, end, scratch):
    """Fails with status `row` in the tile whose number is `scale`."""
    p = view(PROBE, params)
    if begin <= p.scale < end:
        return p.row
    return 0


@kernel
def probe_count_down(params, begin, end, scratch):
    """Subtract 1 from the int64 at `source`; the byte at `target` tells whether it is still positive."""
    p = view(PROBE, params)
    i64(p.source)[0] -= 1
    u8(p.target)[0] = i64(p.source)[0] > 0
    return 0


@kernel
def probe_scratch(params, begin, end, scratch):
    """Fill this worker's scratch with the tile's number, read it back into the tile's sum of `row` words."""
    p = view(PROBE, params)
    target = i64(p.target)
    words = i64(scratch)
    for tile in range(begin, end):
        for i in range(p.row):
            words[i] = tile
        total = 0
        for i in range(p.row):
            total += words[i]
        target[tile] = total + (scratch & 63)
    return 0

"""Decoding of interleaved rANS (schema/coding/rans.py): a branch is taken where words run out, and nowhere else."""

from __future__ import annotations

from numba import int64, uint8, uint32

from runtime.kernels.abi import inline, kernel, truncated_divide, u8, u16, u32, view
from runtime.kernels.rans_parameters import RANS
from runtime.native.status import Status

INVALID = int(Status.INVALID_ARGUMENT)
LOWEST = 1 << 16


@inline
def advanced(p, x, out):
    """The state after a symbol, which is written; below LOWEST it wants a word."""
    slot = x & ((1 << p.scale) - 1)
    symbol = int64(u8(p.symbol_of)[slot])
    u8(out)[0] = uint8(symbol + p.low)
    entry = int64(u32(p.table)[symbol])
    return (entry >> 16) * (x >> p.scale) + slot - (entry & 0xFFFF)


@kernel
def rans_decode(params, begin, end, scratch):
    """All symbols. INVALID_ARGUMENT where there are more words or fewer than these symbols take."""
    p = view(RANS, params)
    states, words, lanes, count = u32(p.states), u16(p.words), p.lanes, p.count
    used, out = int64(0), p.out
    steps = truncated_divide(count, lanes)
    for _ in range(steps):
        if used + lanes > p.word_count:
            break
        for lane in range(lanes):
            x = advanced(p, int64(states[lane]), out + lane)
            low = int64(x < LOWEST)
            states[lane] = uint32(x << (low << 4) | int64(words[used]) & -low)
            used += low
        out += lanes
    lane = int64(0)
    for at in range(out, p.out + count):
        x = advanced(p, int64(states[lane]), at)
        if x < LOWEST:
            if used == p.word_count:
                return INVALID
            x = x << 16 | int64(words[used])
            used += 1
        states[lane] = uint32(x)
        lane += 1
        if lane == lanes:
            lane = int64(0)
    return 0 if used == p.word_count else INVALID

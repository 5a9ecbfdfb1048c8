"""A decoder of entropy-coded streams in plain Python, written from schema/FORMAT.md alone, one symbol at a time."""

from __future__ import annotations

import struct

M = (65536, 71468, 77936, 84990, 92682, 101070, 110218, 120194)


class Bits:
    """Bits of bytes, the lowest of a byte first."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def one(self) -> int:
        bit = self.data[self.at // 8] >> self.at % 8 & 1
        self.at += 1
        return bit

    def number(self, count: int) -> int:
        return sum(self.one() << i for i in range(count))


def table(data: bytes) -> tuple[int, int, list[int], int]:
    """scale, low, the frequencies, and the bytes that the table takes."""
    scale, fineness, interval = 8 + (data[0] & 7), data[0] >> 3 & 3, data[0] >> 5
    low, n, step = data[1], data[2] + 1, 1 << interval
    bits = Bits(data[3:])
    k, knots = bits.number(3), [bits.number(7)]
    while (len(knots) - 1) * step < n - 1:
        u = 0
        while not bits.one():
            u += 1
        f = u * 2**k + bits.number(k)
        knots.append(knots[-1] + (f // 2 if f % 2 == 0 else -(f + 1) // 2))
    levels = []
    for i in range(n):
        a, o = knots[i // step], i % step
        b = knots[i // step + 1] if o else 0
        level = (a * (step - o) + b * o + step // 2) // step
        levels.append(max(level, 1) if interval else level)
    steps = 1 << fineness
    weights = [M[(q - 2) % steps * 8 // steps] << (q - 2) // steps if q >= 2 else 0 for q in levels]
    shared = 2**scale - sum(q > 0 for q in levels)
    before = [sum(weights[:i]) * shared // sum(weights) for i in range(n + 1)]
    counts = [1 + before[i + 1] - before[i] if levels[i] else 0 for i in range(n)]
    return scale, low, counts, 3 + -(-bits.at // 8)


def decode(data: bytes, count: int) -> list[int]:
    lanes = 1 << data[0]
    scale, low, counts, size = table(data[1:])
    assert sum(counts) == 2**scale
    states = list(struct.unpack_from(f"<{lanes}I", data, 1 + size))
    words = [w for (w,) in struct.iter_unpack("<H", data[1 + size + 4 * lanes :])]
    b = max(1, (len(counts) - 1).bit_length())
    held = min(count, 16 // b * lanes)
    symbols = []
    for i in range(count - held):
        x = states[i % lanes]
        slot, start, symbol = x % 2**scale, 0, 0
        while slot >= start + counts[symbol]:
            start += counts[symbol]
            symbol += 1
        x = counts[symbol] * (x // 2**scale) + slot - start
        if x < 1 << 16:
            x = x << 16 | words.pop(0)
        states[i % lanes] = x
        symbols.append(low + symbol)
    assert not words
    for i in range(held):
        symbols.append(low + (states[i % lanes] >> b * (i // lanes) & (1 << b) - 1))
    assert all(x >> 16 == 1 for x in states)
    return symbols

"""How often each symbol of an entropy-coded stream occurs, as a table that takes few bytes.

A symbol's frequency is stored as a level on a logarithmic scale of `2**fineness` (1, 2, 4 or 8) levels an octave: 0 for
one that does not occur, 1 for the rarest, and weight 2**((level - 2) / 2**fineness) for the others. With one level an
octave, levels are what code lengths are to a Huffman code; finer ones cost more bits and lose less. Neighbours have
similar levels, so differences are stored, as Rice codes (R. F. Rice, 1979), and where the distribution is smooth only
the levels of every 2nd, 4th, ... symbol, with straight lines between them. Whole frequencies that sum to exactly
2**scale follow by integer arithmetic, so that no table can be wrong in its sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from schema.errors import FormatError

MIN_SCALE, MAX_SCALE = 8, 14
SCALES = (8, 10, 12, 14)  # that the encoder tries
FINEST = 3
MAX_INTERVAL_LOG2 = 5
RICE_BITS, FIRST_BITS = 3, 7  # of the Rice codes' parameter; of the first level, which has no neighbour
MAX_RICE = (1 << RICE_BITS) - 1
OCTAVES = 15  # between the smallest and the largest weight
MANTISSAS = (65536, 71468, 77936, 84990, 92682, 101070, 110218, 120194)  # round(2**(16 + i / 8))
HEADER = 3


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The symbols low, low + 1, ... with their frequencies (0: does not occur), which sum to 2**scale."""

    scale: int
    low: int
    counts: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """For each symbol, the frequencies of those before it."""
        return np.cumsum(self.counts) - self.counts


@dataclass(frozen=True, eq=False)
class _Stored:
    """A table as it is stored: levels (int64) of every 2**interval-th symbol and the first one behind the last."""

    scale: int
    fineness: int
    interval: int
    low: int
    symbols: int
    knots: np.ndarray

    def levels(self) -> np.ndarray:
        """One for each symbol."""
        if self.interval == 0:
            return self.knots
        step = 1 << self.interval
        offset = np.arange(step, dtype=np.int64)
        lines: np.ndarray = self.knots[:-1, None] * (step - offset) + self.knots[1:, None] * offset
        every = np.append((lines + step // 2 >> self.interval).reshape(-1), self.knots[-1])
        return np.maximum(every[: self.symbols], 1)

    def frequencies(self) -> Frequencies:
        """Raises FormatError for levels that no table has."""
        levels = self.levels()
        octaves, steps = np.divmod(np.maximum(levels - 2, 0), 1 << self.fineness)
        if int(octaves.max()) > OCTAVES:
            raise FormatError(f"a frequency of level {levels.max()}, {1 << self.fineness} of which are an octave")
        weights = np.where(levels >= 2, np.asarray(MANTISSAS)[steps << FINEST - self.fineness] << octaves, 0)
        present = levels > 0
        total = int(weights.sum())
        if total == 0:
            raise FormatError("a table of frequencies that are all 0")
        ends = np.cumsum(weights) * ((1 << self.scale) - int(present.sum())) // total
        return Frequencies(self.scale, self.low, present + np.diff(ends, prepend=0))

    def folded(self) -> np.ndarray:
        """Differences of the levels: 0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
        differences = np.diff(self.knots)
        return np.where(differences < 0, -2 * differences - 1, 2 * differences)

    def rice(self) -> tuple[int, int]:
        """The bits that the levels take, and the parameter of the Rice codes."""
        folded = self.folded()
        return min(
            (int((folded >> rice).sum()) + folded.size * (1 + rice) + RICE_BITS + FIRST_BITS, rice)
            for rice in range(MAX_RICE + 1)
        )

    def stored(self) -> bytes:
        _, rice = self.rice()
        bits = [*_bits(rice, RICE_BITS), *_bits(int(self.knots[0]), FIRST_BITS)]
        for folded in self.folded().tolist():
            bits += [0] * (folded >> rice) + [1, *_bits(folded, rice)]
        kind = self.scale - MIN_SCALE | self.fineness << 3 | self.interval << 5
        return bytes([kind, self.low, self.symbols - 1]) + np.packbits(bits, bitorder="little").tobytes()


def read(data: memoryview) -> tuple[Frequencies, int]:
    """The table at the start of a stream and its size in bytes. Raises FormatError."""
    if len(data) < HEADER:
        raise FormatError(f"{len(data)} bytes are too few for a table of frequencies")
    scale, fineness, interval = MIN_SCALE + (data[0] & 7), data[0] >> 3 & 3, data[0] >> 5
    low, count = data[1], data[2] + 1
    if scale > MAX_SCALE or interval > MAX_INTERVAL_LOG2:
        raise FormatError(f"a table of frequencies of unknown kind {data[0]}")
    if low + count > 256:
        raise FormatError(f"frequencies of symbols {low} to {low + count - 1}, which are more than 255")
    knots, size = _read_levels(data[HEADER:], _knots(count, interval))
    return _Stored(scale, fineness, interval, low, count, knots).frequencies(), HEADER + size


def _knots(symbols: int, interval: int) -> int:
    return -(-(symbols - 1) >> interval) + 1


def _read_levels(data: memoryview, count: int) -> tuple[np.ndarray, int]:
    most = count * ((2 << FIRST_BITS) + MAX_RICE) + RICE_BITS + FIRST_BITS
    bits = np.unpackbits(np.frombuffer(data[: -(-most // 8)], np.uint8), bitorder="little").tolist()
    rice = _number(bits, 0, RICE_BITS)
    levels = [_number(bits, RICE_BITS, FIRST_BITS)]
    at = RICE_BITS + FIRST_BITS
    while len(levels) < count:
        try:
            end = bits.index(1, at)
        except ValueError:
            raise FormatError("the table of frequencies does not end") from None
        folded = (end - at << rice) | _number(bits, end + 1, rice)
        levels.append(levels[-1] + (folded >> 1 ^ -(folded & 1)))
        if not 0 <= levels[-1] < 1 << FIRST_BITS:
            raise FormatError(f"a frequency of level {levels[-1]}")
        at = end + 1 + rice
    size = -(-at // 8)
    if any(bits[at : 8 * size]):
        raise FormatError("the padding after the table of frequencies is not zero")
    return np.array(levels, np.int64), size


def _number(bits: list[int], at: int, count: int) -> int:
    if at + count > len(bits):
        raise FormatError("the table of frequencies does not end")
    return sum(bit << i for i, bit in enumerate(bits[at : at + count]))


def _bits(number: int, count: int) -> list[int]:
    return [number >> i & 1 for i in range(count)]


def fit(occurrences: np.ndarray) -> tuple[Frequencies, bytes, float]:
    """The table that takes few bytes together with what it codes, as stored, and how many bits the symbols take.

    occurrences: how often each of up to 256 symbols occurs; one of them does.
    """
    occurring = np.flatnonzero(occurrences)
    low, high = int(occurring[0]), int(occurring[-1])
    counts = occurrences[low : high + 1]
    intervals = range(MAX_INTERVAL_LOG2 + 1)
    typical = [t for i in intervals for t in _tables(counts, low, i, SCALES[-2:-1], (FINEST - 1,))]
    stored = min(typical, key=lambda t: _cost(counts, t))
    refined = [stored, *_tables(counts, low, stored.interval, SCALES, range(FINEST + 1))]
    stored = min(refined, key=lambda t: _cost(counts, t))
    table = stored.frequencies()
    return table, stored.stored(), _coded_bits(counts, table)


def _tables(
    counts: np.ndarray, low: int, interval: int, scales: Iterable[int], fineness: Iterable[int]
) -> Iterator[_Stored]:
    """Tables for these occurrences, none where too few symbols are there for lines between every so many."""
    knots = _knots(len(counts), interval)
    if interval and knots < 4:
        return
    smooth = _smooth(counts, interval, knots)
    for scale in scales:
        # Every symbol that occurs has a frequency of 1 before weights share what is left.
        exponents = np.log2(np.maximum(smooth * ((1 << scale) / int(counts.sum())) - 1, 1e-9))
        base = max(-1.0, float(exponents.max()) - OCTAVES)
        for fine in fineness:
            levels = np.maximum(np.rint((exponents - base) * (1 << fine)).astype(np.int64) + 2, 1)
            if interval == 0:
                levels[counts == 0] = 0
            inside = levels[: max(1, knots - 1)]  # the last knot may lie behind the symbols
            if int(inside.max()) < 2:
                inside[np.argmax(smooth[: len(inside)])] = 2
            yield _Stored(scale, fine, interval, low, len(counts), levels)


def _cost(counts: np.ndarray, stored: _Stored) -> float:
    """Bits of the table and of the symbols."""
    return stored.rice()[0] + _coded_bits(counts, stored.frequencies())


def _smooth(counts: np.ndarray, interval: int, knots: int) -> np.ndarray:
    """Mean occurrences around each knot, by weights that fall to 0 at its neighbours."""
    step = 1 << interval
    near = 1 - np.abs(np.arange(1 - step, step)) / step
    at = step * np.arange(knots)
    sums, weights = np.convolve(counts, near), np.convolve(np.ones(len(counts)), near)
    sums, weights = (np.pad(a, (0, step)) for a in (sums, weights))
    return sums[at + step - 1] / np.maximum(weights[at + step - 1], near.min())


def _coded_bits(counts: np.ndarray, table: Frequencies) -> float:
    occurring = counts > 0
    return float(np.sum(counts[occurring] * (table.scale - np.log2(table.counts[occurring]))))

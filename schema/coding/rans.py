"""Symbols of up to 8 bits by their frequencies: interleaved range asymmetric numeral systems.

Jarek Duda, "Asymmetric numeral systems", arXiv:1311.2540; interleaving after Fabian Giesen, "Interleaved entropy
coders", arXiv:1402.3392. Symbol i belongs to lane i % lanes. Each lane has a state of 32 bits; all take the 16-bit
words that they need from one run of words, lane after lane, so that a step of all lanes is a few operations on vectors.
FORMAT.md describes the bytes. Here is the numpy decoder, which is normative; an engine may register a faster one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schema.coding import frequencies
from schema.coding.bitpack import bits_for
from schema.coding.frequencies import Frequencies
from schema.errors import FormatError

MAX_LANES_LOG2 = 12
MAX_STEPS = 1 << 14  # symbols of a lane: so that numpy, which takes some 10 us for a step, is done soon
LOWEST = 1 << 16  # of a lane's state between two symbols
WORD_BITS = 16
LANE_BYTES = 4096  # of coded symbols for each lane, or half as many: a lane costs one to three bytes
ENOUGH_LANES_LOG2 = 8  # for all but the longest streams


@dataclass(eq=False)
class Lanes:
    """What is left to decode: `words` (uint16) and the lanes' states (uint32), which a decoder advances."""

    states: np.ndarray
    words: np.ndarray
    table: Frequencies


Decoder = Callable[[Lanes, np.ndarray], bool]
"""(lanes, array of uint8 to fill with symbols) -> whether the words were just enough."""


def encode(symbols: np.ndarray) -> bytes | None:
    """The stream of symbols (uint8, 1-D, one at least); None for more than the most lanes may have."""
    if len(symbols) > MAX_STEPS << MAX_LANES_LOG2:
        return None
    table, head, bits = frequencies.fit(np.bincount(symbols, minlength=256))
    lanes_log2 = _lanes_log2(len(symbols), bits)
    lanes = 1 << lanes_log2
    relative = symbols.astype(np.int64) - table.low
    rest = len(symbols) - _in_states(lanes, table, len(symbols))
    states, words = _encode(relative[:rest], LOWEST + _packed(relative[rest:], lanes, table), table)
    return bytes([lanes_log2]) + head + states.astype("<u4").tobytes() + words.astype("<u2").tobytes()


def estimate(symbols: np.ndarray) -> float:
    """About how many bytes `encode` makes of symbols, many times as fast."""
    _, head, bits = frequencies.fit(np.bincount(symbols, minlength=256))
    lanes = _lanes_log2(len(symbols), bits)
    return len(head) + bits / 8 + (1 << lanes)


def decode(data: bytes | memoryview, count: int) -> np.ndarray:
    """`count` symbols (uint8) of a stream. Raises FormatError for bytes that are no stream of so many symbols."""
    view = memoryview(data).cast("B")
    if count == 0:
        raise FormatError("an entropy-coded stream of nothing")
    if len(view) == 0 or view[0] > MAX_LANES_LOG2:
        raise FormatError(f"2^{view[0]} lanes are more than 2^{MAX_LANES_LOG2}" if len(view) else "an empty stream")
    lanes = 1 << view[0]
    if count > MAX_STEPS * lanes:
        raise FormatError(f"{count} symbols of {lanes} lanes, which have {MAX_STEPS} each at most")
    table, size = frequencies.read(view[1:])
    start = 1 + size
    words = start + 4 * lanes
    if len(view) < words or (len(view) - words) % 2:
        raise FormatError(f"{len(view) - start} bytes for the states of {lanes} lanes and their words")
    states = np.frombuffer(view[start:words], "<u4").astype(np.uint32)
    if int(states.min()) < LOWEST:
        raise FormatError(f"a lane starts in state {states.min()}")
    todo = Lanes(states, np.frombuffer(view[words:], "<u2").astype(np.uint16), table)
    symbols = np.empty(count, np.uint8)
    kept = _in_states(lanes, table, count)
    if not _decoder(todo, symbols[: count - kept]):
        raise FormatError(f"the words of {lanes} lanes are not those of {count} symbols")
    symbols[count - kept :] = _unpacked(todo.states, kept, table)
    return symbols


def use(decoder: Decoder) -> None:
    """Decode with this function from now on; it gives what `decode_lanes` gives."""
    global _decoder
    _decoder = decoder


def decode_lanes(todo: Lanes, symbols: np.ndarray) -> bool:
    """The normative decoder: all lanes at once, a step for each `lanes` symbols."""
    scale, lanes = todo.table.scale, len(todo.states)
    counts, starts = todo.table.counts, todo.table.starts
    symbol_of = np.repeat(np.arange(len(counts)), counts)
    count_of = counts[symbol_of]
    offset_of = np.arange(1 << scale) - starts[symbol_of]
    symbol_of = (symbol_of + todo.table.low).astype(np.uint8)
    words, used = todo.words.astype(np.int64), 0
    x, mask = todo.states.astype(np.int64), (1 << scale) - 1
    whole = len(symbols) // lanes * lanes
    for here in [*symbols[:whole].reshape(-1, lanes), symbols[whole:]]:
        now = x[: len(here)]
        slot = now & mask
        symbol_of.take(slot, out=here, mode="clip")
        now >>= scale
        now *= count_of.take(slot)
        now += offset_of.take(slot)
        (low,) = (now < LOWEST).nonzero()
        if low.size:
            taken = words[used : used + low.size]
            used += low.size
            if len(taken) != low.size:
                return False
            now[low] = now.take(low) << WORD_BITS | taken
    todo.states[:] = x
    return used == len(words)


_decoder: Decoder = decode_lanes


def _encode(symbols: np.ndarray, states: np.ndarray, table: Frequencies) -> tuple[np.ndarray, np.ndarray]:
    """The states and words from which a decoder gets these symbols (relative to the lowest) and then `states`."""
    lanes, x = len(states), states.copy()
    counts, starts = table.counts, table.starts
    words = np.empty(len(symbols) + lanes, np.uint16)  # a symbol takes one word at most
    used = len(words)
    for first in reversed(range(0, len(symbols), lanes)):
        here = symbols[first : first + lanes]
        x_here, count = x[: len(here)], counts.take(here)
        (high,) = (x_here >= count << 2 * WORD_BITS - table.scale).nonzero()
        if high.size:
            leaving = x_here.take(high)
            words[used - high.size : used] = leaving & 0xFFFF
            used -= high.size
            x_here[high] = leaving >> WORD_BITS
        quotient, rest = np.divmod(x_here, count)
        x_here[:] = (quotient << table.scale) + rest + starts.take(here)
    return x, words[used:]


def _lanes_log2(count: int, bits: float) -> int:
    """Of the lanes for so many symbols that take so many bits."""
    enough = int(bits / 8 / LANE_BYTES).bit_length()
    return max(min(enough, ENOUGH_LANES_LOG2), (-(-count // MAX_STEPS) - 1).bit_length())


def _in_states(lanes: int, table: Frequencies, count: int) -> int:
    """How many of the last symbols the lanes' last states hold, which would otherwise say nothing in 16 bits."""
    return min(count, lanes * (WORD_BITS // bits_for(len(table.counts) - 1)))


def _packed(symbols: np.ndarray, lanes: int, table: Frequencies) -> np.ndarray:
    bits = bits_for(len(table.counts) - 1)
    each = WORD_BITS // bits
    padded = np.zeros(each * lanes, np.int64)
    padded[: len(symbols)] = symbols
    return (padded.reshape(each, lanes) << bits * np.arange(each)[:, None]).sum(0)


def _unpacked(states: np.ndarray, count: int, table: Frequencies) -> np.ndarray:
    bits = bits_for(len(table.counts) - 1)
    each = WORD_BITS // bits
    if (states >> WORD_BITS != 1).any():
        raise FormatError("a lane ends in a state that none ends in")
    held = states.astype(np.int64) - LOWEST
    symbols = (held >> bits * np.arange(each)[:, None] & (1 << bits) - 1).reshape(-1)
    if symbols[count:].any() or (held >> bits * each).any():
        raise FormatError("the padding after the last symbol is not zero")
    if int(symbols.max()) >= len(table.counts):
        raise FormatError(f"symbol {table.low + int(symbols.max())}, which has no frequency")
    return (symbols[:count] + table.low).astype(np.uint8)

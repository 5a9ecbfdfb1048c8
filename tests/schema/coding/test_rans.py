import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import FormatError
from schema.coding import frequencies, rans
from tests.support import rans_by_the_book
from tests.support.drawing import symbol_arrays


@given(symbol_arrays())
def test_round_trip(symbols):
    data = rans.encode(symbols)
    np.testing.assert_array_equal(rans.decode(data, len(symbols)), symbols)
    np.testing.assert_array_equal(rans.decode(memoryview(b"?" + data)[1:], len(symbols)), symbols)


@given(symbol_arrays(1000))
def test_as_the_format_says(symbols):
    assert rans_by_the_book.decode(rans.encode(symbols), len(symbols)) == symbols.tolist()


@given(symbol_arrays())
def test_tables_sum_and_survive(symbols):
    occurrences = np.bincount(symbols, minlength=256)
    table, stored, bits = frequencies.fit(occurrences)
    assert table.counts.sum() == 1 << table.scale
    assert (table.counts[symbols.astype(int) - table.low] > 0).all()
    again, size = frequencies.read(memoryview(stored + b"\xff" * 9))
    assert size == len(stored)
    assert (again.scale, again.low) == (table.scale, table.low)
    np.testing.assert_array_equal(again.counts, table.counts)
    ideal = occurrences[occurrences > 0]
    assert bits >= ideal @ -np.log2(ideal / len(symbols)) - 1e-6


def table(scale, fineness, interval, low, symbols, bits, size):
    """A table as FORMAT.md describes it; bits: an integer, its lowest bit first."""
    return bytes([scale - 8 | fineness << 3 | interval << 5, low, symbols - 1]) + bits.to_bytes(size, "little")


def test_a_table_written_by_hand():
    """Rice parameter 2, level 2, difference 8 (folded: 16 = 4 times 4, and 0); lines between make 2, 4, 6, 8, 10."""
    read, size = frequencies.read(memoryview(table(8, 0, 2, 100, 5, 2 | 2 << 3 | 1 << 14, 3)))
    assert (read.scale, read.low, size) == (8, 100, 6)
    # Weights 1, 4, 16, 64, 256 share 256 - 5: the sums 1, 5, 21, 85, 341 times 251, divided by 341.
    assert read.counts.tolist() == [1 + 0, 1 + 3, 1 + 12, 1 + 47, 1 + 189]


def test_streams_written_by_hand():
    """Symbols 7 and 8, each of 128 of 256 slots."""
    head = table(8, 0, 0, 7, 2, 3 << 3 | 1 << 10, 2)
    # Slot 1 of state 2^16 + 1 is symbol 7; 256 * 128 + 1 is low, so that the word 5 follows. Slot 5 is 7 as well.
    lanes = rans.Lanes(np.array([(1 << 16) + 1], np.uint32), np.array([5], np.uint16), frequencies.read(head)[0])
    symbols = np.zeros(2, np.uint8)
    assert rans.decode_lanes(lanes, symbols)
    assert symbols.tolist() == [7, 7]
    assert lanes.states.tolist() == [((256 * 128 + 1) << 16 | 5) // 256 * 128 + 5]
    # 16 symbols of a bit are all in the state.
    assert rans.decode(b"\0" + head + b"\1\0\1\0", 16).tolist() == [8] + [7] * 15


def test_smooth_distributions_have_small_tables(rng):
    normal = np.clip(np.rint(rng.normal(size=50_000) * 30) + 128, 0, 255).astype(np.uint8)
    counts = np.bincount(normal, minlength=256)
    _, stored, bits = frequencies.fit(counts)
    present = counts[counts > 0]
    entropy = present @ -np.log2(present / present.sum())
    assert bits / 8 + len(stored) < entropy / 8 * 1.003


SOUND = rans.encode(np.array([3, 4, 4, 5, 4, 4] * 50, np.uint8))


def test_what_the_hostile_streams_start_from_is_sound():
    assert len(rans.decode(SOUND, 300)) == 300


@pytest.mark.parametrize(
    ("data", "count", "says"),
    [
        (b"", 1, "an empty stream"),
        (SOUND, 0, "of nothing"),
        (SOUND, 299, "states? |not those of|padding"),
        (SOUND, 400, "not those of 400"),
        (SOUND, 1 << 40, "16384 each at most"),
        (b"\x0d" + SOUND[1:], 300, "2\\^13 lanes"),
        (b"\x0c" + SOUND[1:], 300, "states of 4096 lanes"),
        (b"\x00\x07" + SOUND[2:], 300, "unknown kind"),
        (b"\x00\xc0" + SOUND[2:], 300, "unknown kind"),
        (SOUND[:2] + b"\xff" + SOUND[3:], 300, "more than 255"),
        (SOUND[:3], 300, "too few|does not end"),
        (SOUND[:4], 300, "does not end"),
        (SOUND[:4] + bytes(60), 300, "does not end"),
        (SOUND[:-1], 300, "bytes for the states"),
        (SOUND[:-2], 300, "not those of"),
        (SOUND + b"\0\0", 300, "not those of"),
        (b"\x00" + table(8, 0, 0, 0, 1, 0, 2), 300, "all 0"),
        (b"\x00" + table(8, 0, 0, 0, 1, 1 << 3, 2), 300, "all 0"),
        (b"\x00" + table(8, 0, 0, 0, 1, 127 << 3, 2), 300, "level 127, 1 of which"),
        (b"\x00" + table(8, 0, 0, 0, 2, 127 << 3 | 1 << 12, 2), 300, "level 128"),
        (b"\x00" + table(8, 0, 0, 0, 2, 1 << 11, 2), 300, "level -1"),
        (b"\x00" + table(8, 0, 0, 0, 1, 2 << 3 | 1 << 12, 2), 300, "padding after the table"),
        (b"\x00" + table(8, 0, 0, 0, 1, 2 << 3, 2) + bytes(4), 300, "starts in state 0"),
        (b"\x00" + table(8, 0, 0, 0, 1, 2 << 3, 2) + b"\0\0\2\0", 300, "ends in a state that none ends in"),
        (b"\x00" + table(8, 0, 0, 0, 3, 2 << 3 | 3 << 10, 2) + b"\0\1\1\0", 4, "padding after the last symbol"),
        (b"\x00" + table(8, 0, 0, 0, 3, 2 << 3 | 3 << 10, 2) + b"\3\0\1\0", 4, "symbol 3, which has no"),
    ],
)
def test_hostile_streams(data, count, says):
    with pytest.raises(FormatError, match=says):
        rans.decode(data, count)


@given(st.data())
def test_mutated_streams_decode_or_are_refused(data):
    stream = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    try:
        symbols = rans.decode(bytes(stream), 300)
    except FormatError:
        return
    assert symbols.shape == (300,)

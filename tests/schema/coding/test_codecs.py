import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from schema import FormatError
from schema.coding import codecs, rans
from schema.coding.streams import Stream
from schema.generated.layout import ENUMS


def test_every_coding_of_the_schema_has_a_codec():
    assert list(codecs.CODECS) == list(ENUMS["Coding"])


@pytest.mark.parametrize("dtype", "float16 float32 float64 int8 int32 int64 uint8 uint16 uint32 bool".split())
def test_each_codec_gives_back_what_it_took(dtype, rng):
    normal = rng.normal(size=37)
    numbers = normal > 0 if dtype == "bool" else (normal * 100).astype(dtype)
    taken = 0
    for name, codec in codecs.CODECS.items():
        stream = codec.encode(numbers)
        if stream is not None:
            taken += 1
            assert stream.coding == name
            assert codec.decode(stream, numbers.dtype, 37).tobytes() == numbers.tobytes()
            with pytest.raises(FormatError):
                codec.decode(stream, numbers.dtype, 46)
    assert taken


def test_the_smallest_is_kept():
    assert codecs.encode(np.array([1, 2, 3] * 100, np.uint16)).bits == 2
    assert codecs.encode(np.array([1, 2, 3, 0] * 100, np.uint8)).coding == "PACKED"
    assert codecs.encode(np.array([1, 2, 3, 1] * 100, np.uint8)).coding == "RANS"
    assert codecs.encode(np.array([1, 2, 3], np.uint8)).coding == "PACKED"
    assert codecs.encode(np.array([1, 2, 60000] * 100, np.uint16)).coding == "RAW"
    assert codecs.encode(np.array([1.0, 1 / 3] * 100, np.float32)).coding == "RAW"


def test_what_says_much_is_not_the_smallest_where_more_bytes_are_asked_for():
    zeros = np.zeros(10_000, np.uint8)
    assert len(codecs.encode(zeros).data) < 100
    assert codecs.encode(zeros, 100).coding == "PACKED"
    assert codecs.encode(zeros, 2000).coding == "RAW"
    assert codecs.encode(zeros, 1 << 20).coding == "RAW"


@pytest.mark.parametrize("bits", codecs.BITS_OF_BOOLS)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_bools_of_any_number_to_a_symbol(bits, count, rng):
    numbers = rng.random(count) < 0.1
    symbols = np.packbits(np.pad(numbers.reshape(-1), (0, -count % bits)).reshape(-1, bits), axis=1, bitorder="little")
    stream = Stream(rans.encode(symbols.reshape(-1)), "RANS", bits)
    np.testing.assert_array_equal(codecs.decode(stream, np.dtype(bool), count), numbers)


def test_misaligned_bytes_are_copied():
    data = memoryview(b"\x00" + np.arange(4, dtype=np.float32).tobytes())[1:]
    numbers = codecs.decode(Stream(data), np.dtype(np.float32), 4)
    assert numbers.flags.aligned
    np.testing.assert_array_equal(numbers, [0, 1, 2, 3])


def test_aligned_bytes_are_not_copied():
    data = np.arange(4, dtype=np.float32)
    assert np.shares_memory(codecs.decode(Stream(memoryview(data).cast("B")), data.dtype, 4), data)


@pytest.mark.parametrize(
    ("stream", "dtype"),
    [
        (Stream(b"\x02"), bool),
        (Stream(b"\x00", "PACKED", 2), bool),
        (Stream(b"\x00" * 4, "PACKED", 8), np.int8),
        (Stream(b"\x00", "ARITHMETIC"), np.uint8),
        (Stream(rans.encode(np.zeros(10, np.uint8)), "RANS", 8), np.int16),
        (Stream(rans.encode(np.zeros(10, np.uint8)), "RANS", 7), np.int8),
        (Stream(rans.encode(np.zeros(10, np.uint8)), "RANS", 3), bool),
        (Stream(rans.encode(np.full(10, 2, np.uint8)), "RANS", 1), bool),
        (Stream(rans.encode(np.full(2, 255, np.uint8)), "RANS", 8), bool),
    ],
)
def test_hostile_streams(stream, dtype):
    with pytest.raises(FormatError):
        codecs.decode(stream, np.dtype(dtype), len(stream.data))


@given(
    st.lists(st.integers(-127, 127), min_size=1, max_size=300).filter(any),
    st.integers(-20, 8),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_multiples_of_a_power_of_two_are_stored_as_int8(integers, exponent, dtype):
    numbers = (np.array(integers) * 2.0**exponent).astype(dtype)
    assume(np.isfinite(numbers).all() and np.array_equal(numbers, np.array(integers) * 2.0**exponent))
    stream = codecs.encode(numbers)
    assert len(stream.data) <= len(integers)
    assert codecs.decode(stream, numbers.dtype, len(integers)).tobytes() == numbers.tobytes()


@given(arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32)))
def test_floats_come_back_to_the_bit(numbers):
    assert codecs.decode(codecs.encode(numbers), numbers.dtype, numbers.size).tobytes() == numbers.tobytes()


def test_what_steps_would_change_is_stored_as_it_is():
    for numbers in ([0.0, -0.0, 1.0], [1.0, np.nan], [1.0, np.inf], [1.0, 1 / 3], [1.0, 1 / 256], [0.0, 0.0]):
        assert codecs.encode(np.array(numbers, np.float32)).step == 0


@pytest.mark.parametrize("step", [3.0, 0.1, -1.0, float("nan"), float("inf"), 2.0**-140, 2.0**121])
def test_hostile_steps_are_refused(step):
    with pytest.raises(FormatError, match="powers of two"):
        codecs.decode(Stream(b"\1\2", step=step), np.dtype(np.float32), 2)


def test_steps_are_of_floats():
    with pytest.raises(FormatError, match="of int8"):
        codecs.decode(Stream(b"\1\2", step=1.0), np.dtype(np.int8), 2)


@pytest.mark.parametrize("density", [0.5, 0.1, 0.01, 0.0001])
@pytest.mark.parametrize("bits", codecs.BITS_OF_GAPS)
def test_gaps_round_trip(monkeypatch, rng, density, bits):
    monkeypatch.setattr(codecs, "BITS_OF_GAPS", (bits,))
    bools = rng.random(20_000) < density
    bools[[0, 700]] = True
    bools[-100:] = False
    stream = codecs.CODECS["GAPS"].encode(bools)
    if stream is None:
        assert 2 * bools.sum() > bools.size
        return
    assert stream.bits == bits
    np.testing.assert_array_equal(codecs.decode(stream, np.dtype(bool), bools.size), bools)


def test_gaps_where_zeros_come_together(rng):
    """Dense columns beside empty ones."""
    bools = rng.random((200, 300)) < np.where(np.arange(300) % 50 < 10, 0.3, 0.002)
    assert codecs.encode(bools.reshape(-1)).coding == "GAPS"


def gaps(symbols, count=None, bits=3):
    data = codecs.rans.encode(np.array(symbols, np.uint8))
    return Stream(codecs.GAPS.pack(len(symbols) if count is None else count) + data, "GAPS", bits)


def test_gaps_written_by_hand():
    bools = codecs.decode(gaps([0, 2, 7, 7, 1, 4]), np.dtype(bool), 24)
    assert np.flatnonzero(bools).tolist() == [0, 3, 19]


@pytest.mark.parametrize(
    ("stream", "dtype", "message"),
    [
        (gaps([0, 2, 7]), "uint8", "for numbers of uint8"),
        (gaps([0, 2, 7], bits=2), "bool", "runs of zeros of 2 bits"),
        (Stream(b"\0\0\0", "GAPS", 3), "bool", "too few for runs"),
        (gaps([0, 2, 7], count=2**32 - 1), "bool", "4294967295 runs of zeros in 12 bools"),
        (gaps([0, 2, 8]), "bool", "a run of 8 zeros, of which 3 bits hold 7 at most"),
        (gaps([0, 2, 7, 2]), "bool", "runs of zeros that end at 14, not behind 12 bools"),
        (gaps([0, 2, 7, 0]), "bool", "runs of zeros that end at 12, not behind 12 bools"),
        (gaps([0, 1, 3, 7]), "bool", "runs of zeros that end at 14, not behind 12 bools"),
        (gaps([0, 1, 2, 7]), "bool", "runs of zeros that end at 13, not behind 12 bools"),
        (gaps([0, 2, 7], count=0), "bool", "stream of nothing"),
        (gaps([0, 2] * 4, count=9), "bool", "."),
    ],
)
def test_hostile_gaps(stream, dtype, message):
    with pytest.raises(FormatError, match=message):
        codecs.decode(stream, np.dtype(dtype), 12)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import FormatError
from schema.coding import bitpack


@given(st.data(), st.integers(1, 16))
def test_round_trip(data, bits):
    numbers = data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=70))
    packed = bitpack.pack(np.array(numbers, np.uint16), bits)
    assert len(packed) == bitpack.packed_size(len(numbers), bits)
    assert bitpack.unpack(packed, bits, len(numbers), np.uint16).tolist() == numbers


@given(st.data(), st.integers(1, 16))
def test_lowest_bits_first(data, bits):
    numbers = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=40))
    stream = sum(n << bits * i for i, n in enumerate(numbers))
    assert bitpack.pack(np.array(numbers), bits) == stream.to_bytes(bitpack.packed_size(len(numbers), bits), "little")


@pytest.mark.parametrize(("largest", "bits"), [(0, 1), (1, 1), (2, 2), (255, 8), (256, 9), (65535, 16)])
def test_bits_for(largest, bits):
    assert bitpack.bits_for(largest) == bits


@pytest.mark.parametrize(
    ("data", "bits", "count", "dtype"),
    [
        (b"\x00", 0, 8, np.uint8),
        (b"\x00" * 17, 17, 8, np.uint32),
        (b"\x00" * 9, 9, 8, np.uint8),
        (b"\x00", 4, 3, np.uint8),
        (b"\x00\x00", 4, 2, np.uint8),
        (b"", 4, 1, np.uint8),
        (b"\x10", 4, 1, np.uint8),
        (b"", 1, 1 << 62, np.uint8),
    ],
)
def test_hostile_streams(data, bits, count, dtype):
    with pytest.raises(FormatError):
        bitpack.unpack(data, bits, count, dtype)

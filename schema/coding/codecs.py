"""The stream formats, by their names in `Coding` of xnn.fbs. An entropy coder joins as one more entry of CODECS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schema.coding import bitpack
from schema.coding.streams import Stream
from schema.errors import FormatError


class Codec(NamedTuple):
    """Both directions of one format.

    encode: a 1-D array to a stream, None for numbers that the format does not hold. decode: (stream, dtype, count) to a
    1-D array of exactly `count` numbers; raises FormatError, before allocating anything, for a stream that is not that.
    """

    encode: Callable[[np.ndarray], Stream | None]
    decode: Callable[[Stream, np.dtype, int], np.ndarray]


def _encode_raw(numbers: np.ndarray) -> Stream:
    return Stream(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes())


def _decode_raw(stream: Stream, dtype: np.dtype, count: int) -> np.ndarray:
    if len(stream.data) != count * dtype.itemsize:
        raise FormatError(f"{len(stream.data)} bytes for {count} numbers of {dtype}")
    if count == 0:
        return np.zeros(0, dtype)
    stored = np.frombuffer(stream.data, np.uint8 if dtype.kind == "b" else dtype.newbyteorder("<"))
    if dtype.kind == "b" and stored.max() > 1:
        raise FormatError(f"a bool of {stored.max()}")
    return np.require(stored.view(bool) if dtype.kind == "b" else stored, dtype, "A")


def _encode_packed(numbers: np.ndarray) -> Stream | None:
    if numbers.dtype.kind not in "ub" or numbers.size == 0:
        return None
    bits = bitpack.bits_for(numbers.max())
    return Stream(bitpack.pack(numbers, bits), "PACKED", bits) if bits <= bitpack.MAX_BITS else None


def _decode_packed(stream: Stream, dtype: np.dtype, count: int) -> np.ndarray:
    if dtype.kind not in "ub":
        raise FormatError(f"packed numbers of {dtype}: they can only be unsigned")
    if dtype.kind == "b":
        if stream.bits != 1:
            raise FormatError(f"bools of {stream.bits} bits")
        return bitpack.unpack(stream.data, 1, count, np.dtype(np.uint8)).view(bool)
    return bitpack.unpack(stream.data, stream.bits, count, dtype)


CODECS: dict[str, Codec] = {
    "RAW": Codec(_encode_raw, _decode_raw),
    "PACKED": Codec(_encode_packed, _decode_packed),
}


def encode(numbers: np.ndarray) -> Stream:
    """The smallest stream of these numbers (1-D, C order); the first of CODECS among equals."""
    streams = [codec.encode(numbers) for codec in CODECS.values()]
    return min((s for s in streams if s is not None), key=lambda s: len(s.data))


def decode(stream: Stream, dtype: np.dtype, count: int) -> np.ndarray:
    """`count` numbers of a stream, 1-D, possibly a read-only view of its bytes. Raises FormatError."""
    codec = CODECS.get(stream.coding)
    if codec is None:
        raise FormatError(f"a stream of unknown coding {stream.coding}")
    return codec.decode(stream, np.dtype(dtype), count)

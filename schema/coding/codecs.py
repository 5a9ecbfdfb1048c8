"""The stream formats, by their names in `Coding` of xnn.fbs. An entropy coder joins as one more entry of CODECS."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from schema.coding import bitpack, rans
from schema.coding.streams import Stream
from schema.errors import FormatError

BITS_OF_BOOLS = (8, 4, 2, 1)  # so many may be one symbol
BITS_OF_GAPS = (3, 4, 5, 6, 7, 8)
GAPS = struct.Struct("<I")  # how many runs of zeros there are
STEPS = (2.0**-126, 2.0**120)  # what a step may be: any multiple of it is a normal float32


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


def _encode_rans(numbers: np.ndarray) -> Stream | None:
    if numbers.size == 0 or numbers.dtype.itemsize != 1:
        return None
    if numbers.dtype.kind != "b":
        data = rans.encode(numbers.view(np.uint8) ^ _flipped(numbers.dtype))
        return None if data is None else Stream(data, "RANS", 8)
    bitmap = bitpack.pack(numbers, 1)
    symbols = {
        bits: bitpack.unpack(bitmap, bits, -(-8 * len(bitmap) // bits), np.dtype(np.uint8))[: -(-numbers.size // bits)]
        for bits in BITS_OF_BOOLS
    }
    bits = min(symbols, key=lambda bits: rans.estimate(symbols[bits]))
    data = rans.encode(symbols[bits])
    return None if data is None else Stream(data, "RANS", bits)


def _decode_rans(stream: Stream, dtype: np.dtype, count: int) -> np.ndarray:
    if dtype.itemsize != 1 or stream.bits not in (BITS_OF_BOOLS if dtype.kind == "b" else (8,)):
        raise FormatError(f"symbols of {stream.bits} bits for numbers of {dtype}")
    if dtype.kind != "b":
        return (rans.decode(stream.data, count) ^ _flipped(dtype)).view(dtype)
    symbols = rans.decode(stream.data, -(-count // stream.bits))
    if int(symbols.max()) >> stream.bits or int(symbols[-1]) >> (count - 1) % stream.bits + 1:
        raise FormatError(f"a symbol with more than its {stream.bits} bools")
    bitmap = bitpack.pack(symbols, stream.bits) if stream.bits < 8 else symbols
    return np.unpackbits(np.frombuffer(bitmap, np.uint8), count=count, bitorder="little").view(bool)


def _encode_gaps(numbers: np.ndarray) -> Stream | None:
    if numbers.dtype.kind != "b" or 2 * (ones := np.flatnonzero(numbers)).size > numbers.size or ones.size == 0:
        return None
    zeros = np.diff(ones, prepend=-1, append=numbers.size) - 1  # as if a one followed the last
    symbols = {bits: _gaps(zeros, (1 << bits) - 1) for bits in BITS_OF_GAPS}
    bits = min(symbols, key=lambda bits: _entropy(symbols[bits]))
    data = rans.encode(symbols[bits])
    return None if data is None else Stream(GAPS.pack(symbols[bits].size) + data, "GAPS", bits)


def _gaps(zeros: np.ndarray, longest: int) -> np.ndarray:
    """So many zeros before each one, as symbols: `longest` stands for as many zeros, and no one."""
    whole = zeros // longest
    symbols = np.full(int(whole.sum()) + zeros.size, longest, np.uint8)
    symbols[np.cumsum(whole + 1) - 1] = zeros % longest
    return symbols


def _entropy(symbols: np.ndarray) -> float:
    """Of all symbols together, in bits."""
    counts = np.bincount(symbols)
    counts = counts[counts > 0]
    return float(counts @ np.log2(symbols.size / counts))


def _decode_gaps(stream: Stream, dtype: np.dtype, count: int) -> np.ndarray:
    if dtype.kind != "b" or stream.bits not in BITS_OF_GAPS:
        raise FormatError(f"runs of zeros of {stream.bits} bits for numbers of {dtype}")
    if len(stream.data) < GAPS.size:
        raise FormatError(f"{len(stream.data)} bytes are too few for runs of zeros")
    (runs,) = GAPS.unpack_from(stream.data)
    if runs > count + 1:
        raise FormatError(f"{runs} runs of zeros in {count} bools")
    symbols = rans.decode(stream.data[GAPS.size :], runs)
    longest = (1 << stream.bits) - 1
    if int(symbols.max()) > longest:
        raise FormatError(f"a run of {symbols.max()} zeros, of which {stream.bits} bits hold {longest} at most")
    has_one = symbols < longest
    ends = np.cumsum(symbols + has_one.astype(np.int64))
    if int(ends[-1]) != count + 1 or not has_one[-1]:
        raise FormatError(f"runs of zeros that end at {ends[-1]}, not behind {count} bools")
    bools = np.zeros(count + 1, bool)
    bools[ends[has_one] - 1] = True
    return bools[:count]


def _flipped(dtype: np.dtype) -> np.uint8:
    """Symbols are in the order of the numbers: -128 is symbol 0."""
    return np.uint8(0x80 if dtype.kind == "i" else 0)


CODECS: dict[str, Codec] = {
    "RAW": Codec(_encode_raw, _decode_raw),
    "PACKED": Codec(_encode_packed, _decode_packed),
    "RANS": Codec(_encode_rans, _decode_rans),
    "GAPS": Codec(_encode_gaps, _decode_gaps),
}


def encode_differences(integers: np.ndarray, step: float, expected: np.ndarray) -> Stream:
    """The smallest stream of floats, `integers` (int8) times a step, by their differences to int8 that are expected."""
    differences = integers - expected  # modulo 256, as int8 are
    streams = [replace(s, step=step) for codec in CODECS.values() if (s := codec.encode(differences)) is not None]
    return min(streams, key=lambda s: len(s.data))


def encode(numbers: np.ndarray, at_least: int = 0) -> Stream:
    """The smallest stream of these numbers (1-D, C order) that has `at_least` so many bytes, else the largest; the
    first of CODECS among equals.
    """
    streams = [s for codec in CODECS.values() if (s := codec.encode(numbers)) is not None]
    if numbers.dtype.kind == "f" and (found := steps(numbers)) is not None:
        integers, step = found
        streams += [replace(s, step=step) for codec in CODECS.values() if (s := codec.encode(integers)) is not None]
    enough = [s for s in streams if len(s.data) >= at_least]
    return min(enough, key=lambda s: len(s.data)) if enough else max(streams, key=lambda s: len(s.data))


def decode(stream: Stream, dtype: np.dtype, count: int, expected: np.ndarray | None = None) -> np.ndarray:
    """`count` numbers of a stream, 1-D, possibly a read-only view of its bytes. Raises FormatError.

    expected: int8 to which a stream with a step holds the differences.
    """
    codec, dtype = CODECS.get(stream.coding), np.dtype(dtype)
    if codec is None:
        raise FormatError(f"a stream of unknown coding {stream.coding}")
    if stream.step == 0:
        if expected is not None:
            raise FormatError("differences to what is expected, but no step")
        return codec.decode(stream, dtype, count)
    if dtype.kind != "f" or not STEPS[0] <= stream.step <= STEPS[1] or math.frexp(stream.step)[0] != 0.5:
        raise FormatError(f"steps of {stream.step} for numbers of {dtype}: they are powers of two, of floats")
    integers = codec.decode(stream, np.dtype(np.int8), count)
    if expected is not None:
        integers = integers + expected  # modulo 256
    with np.errstate(over="ignore"):  # what is too large for float16 is infinite
        return (integers * np.float64(stream.step)).astype(dtype)


def steps(numbers: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Floats as int8 and the power of two of which they are multiples; None where there is none, or -0.0 among them."""
    numbers = numbers.astype(np.float64)
    largest = np.abs(numbers).max(initial=0)
    if not 0 < largest < np.inf or np.signbit(numbers[numbers == 0]).any():
        return None
    exponent = math.frexp(largest)[1] - 7  # the largest is 64 to 127 times this power of two
    step = math.ldexp(1.0, exponent)
    integers = numbers / step
    if not STEPS[0] <= step <= STEPS[1] or largest / step > 127 or not (integers == np.rint(integers)).all():
        return None
    return integers.astype(np.int8), step

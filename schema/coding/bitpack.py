"""Unsigned integers of k bits, one after another: the first in the lowest bits of the first byte.

Eight of them fill k bytes exactly, so that both directions work on columns of such groups, without an index per number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schema.errors import FormatError

MAX_BITS = 16
GROUP = 8


def packed_size(count: int, bits: int) -> int:
    """Bytes that `count` numbers take."""
    return -(-count * bits // 8)


def bits_for(largest: int) -> int:
    """How many bits hold 0 to `largest`: 1 at least."""
    return max(1, int(largest).bit_length())


def pack(numbers: np.ndarray, bits: int) -> bytes:
    """Unsigned integers (any shape, C order), each below 2**bits, as packed_size(numbers.size, bits) bytes."""
    flat = np.ravel(numbers)
    groups = -(-flat.size // GROUP)
    columns = np.zeros((groups, GROUP), np.uint16)
    columns.reshape(-1)[: flat.size] = flat
    packed = np.zeros((groups, bits), np.uint8)
    for column in range(GROUP):
        numbers_here = columns[:, column].astype(np.uint32)
        for byte, shift in _bytes_of(column, bits):
            part = numbers_here << shift if shift >= 0 else numbers_here >> -shift
            packed[:, byte] |= part.astype(np.uint8)
    return packed.tobytes()[: packed_size(flat.size, bits)]


def unpack(data: bytes | memoryview, bits: int, count: int, dtype: np.dtype) -> np.ndarray:
    """`count` numbers as a 1-D array of an unsigned dtype of at least `bits` bits.

    Raises FormatError for a number of bits or of bytes that cannot be, and for padding that is not zero.
    """
    dtype = np.dtype(dtype)
    if not 1 <= bits <= min(MAX_BITS, 8 * dtype.itemsize):
        raise FormatError(f"{bits} bits for numbers of {dtype}")
    if len(data) != packed_size(count, bits):
        raise FormatError(f"{len(data)} bytes for {count} numbers of {bits} bits")
    if count == 0:
        return np.zeros(0, dtype)
    padding = 8 * len(data) - count * bits
    if data[-1] >> (8 - padding):
        raise FormatError("the padding after the last number is not zero")
    groups = -(-count // GROUP)
    packed = np.zeros((groups, bits), np.uint8)
    packed.reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    numbers = np.zeros((groups, GROUP), dtype)
    mask = dtype.type((1 << bits) - 1)
    for column in range(GROUP):
        for byte, shift in _bytes_of(column, bits):
            part = packed[:, byte].astype(np.uint32)
            numbers[:, column] |= (part >> shift if shift >= 0 else part << -shift).astype(dtype)
        numbers[:, column] &= mask
    return numbers.reshape(-1)[:count]


def _bytes_of(column: int, bits: int) -> Iterator[tuple[int, int]]:
    """(byte of the group, left shift that brings the number there) for each byte that number `column` touches."""
    first = column * bits
    for byte in range(first // 8, (first + bits - 1) // 8 + 1):
        yield byte, first - 8 * byte

"""Options of custom operators: a FlexBuffers map of numbers, every offset checked as it is read.

The format: https://flatbuffers.dev/internals/#flexbuffers. Values that are no numbers are left out.
"""

from __future__ import annotations

import struct

from schema.errors import FormatError

INT, UINT, FLOAT, INDIRECT_INT, INDIRECT_UINT, INDIRECT_FLOAT, MAP, BOOL = 1, 2, 3, 6, 7, 8, 9, 26
FORMATS = {INT: " bh i   q", UINT: " BH I   Q", BOOL: " BH I   Q", FLOAT: "  e f   d"}  # by width in bytes
INDIRECT = {INDIRECT_INT: INT, INDIRECT_UINT: UINT, INDIRECT_FLOAT: FLOAT}
MOST = 256


def read_map(data: bytes) -> dict[str, int | float]:
    """The numbers of the map that is the root, by name. Raises FormatError for anything else."""
    if len(data) < 3:
        raise FormatError(f"{len(data)} bytes are no FlexBuffer")
    kind, width = data[-2], data[-1]
    if kind >> 2 != MAP or width not in (1, 2, 4, 8):
        raise FormatError("the FlexBuffer is no map")
    start, width = _follow(data, len(data) - 2 - width, width), 1 << (kind & 3)
    count = _unsigned(data, start - width, width)
    if count > MOST:
        raise FormatError(f"a FlexBuffer of {count} values")
    keys, key_width = _follow(data, start - 3 * width, width), _unsigned(data, start - 2 * width, width)
    if key_width not in (1, 2, 4, 8):
        raise FormatError(f"keys of a FlexBuffer in {key_width} bytes")
    result: dict[str, int | float] = {}
    for i in range(count):
        name = _key(data, _follow(data, keys + i * key_width, key_width))
        packed = _unsigned(data, start + count * width + i, 1)
        at, value_kind, value_width = start + i * width, packed >> 2, width
        if value_kind in INDIRECT:
            at, value_kind, value_width = _follow(data, at, width), INDIRECT[value_kind], 1 << (packed & 3)
        if value_kind in FORMATS:
            result[name] = _number(data, at, value_kind, value_width)
    return result


def _number(data: bytes, at: int, kind: int, width: int) -> int | float:
    code = FORMATS[kind][width]
    if code == " ":
        raise FormatError(f"a number of {width} bytes in a FlexBuffer")
    if at < 0 or at + width > len(data):
        raise FormatError(f"bytes {at} to {at + width} are outside of a FlexBuffer of {len(data)}")
    return struct.unpack_from("<" + code, data, at)[0]


def _unsigned(data: bytes, at: int, width: int) -> int:
    return int(_number(data, at, UINT, width))


def _follow(data: bytes, at: int, width: int) -> int:
    """What an offset, which counts backwards, leads to."""
    return at - _unsigned(data, at, width)


def _key(data: bytes, at: int) -> str:
    end = data.find(b"\0", at) if at >= 0 else -1
    if end < 0:
        raise FormatError("a name of a FlexBuffer is outside of it")
    return data[at:end].decode("utf-8", "replace")

"""The outermost layer of an `.xnn` file: sections, their checksums, and the table at the end that lists them.

    metadata (a FlatBuffer, identifier XNN1) | padding | weights | section table | footer

FORMAT.md gives the layout byte by byte. Checksums are compared before anything else is read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from schema.errors import FormatError

IDENTIFIER = b"XNN1"
METADATA, WEIGHTS = 0, 1
KIND_NAMES = {METADATA: "metadata", WEIGHTS: "weights"}
ENTRY = struct.Struct("<QQII")  # offset, size, kind, crc32
FOOTER = struct.Struct("<I4s")  # number of entries, identifier
MAX_SECTIONS = 16
SMALL_ALIGNMENT, MAP_ALIGNMENT = 8, 64


def pack(sections: Mapping[int, bytes], align: int = SMALL_ALIGNMENT) -> bytes:
    """A file of these sections (kind -> bytes); all but the metadata start at a multiple of `align`."""
    body = bytearray()
    table = bytearray()
    for kind in sorted(sections):
        data = sections[kind]
        if body:
            body += bytes(-len(body) % align)
        table += ENTRY.pack(len(body), len(data), kind, zlib.crc32(data))
        body += data
    body += bytes(-len(body) % 4)
    return bytes(body + table + FOOTER.pack(len(sections), IDENTIFIER))


def _entries(data: memoryview) -> list[tuple[int, int, int, int]]:
    if len(data) < FOOTER.size:
        raise FormatError(f"{len(data)} bytes are too few for an .xnn file")
    if bytes(data[4:8]) != IDENTIFIER:
        raise FormatError(f"this is no .xnn file: its identifier is {bytes(data[4:8])!r}, not {IDENTIFIER!r}")
    count, identifier = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    if identifier != IDENTIFIER:
        raise FormatError("the file has no footer: it is truncated, or something was appended to it")
    if not 1 <= count <= MAX_SECTIONS:
        raise FormatError(f"the footer speaks of {count} sections; there are 1 to {MAX_SECTIONS}")
    start = len(data) - FOOTER.size - count * ENTRY.size
    if start < 0:
        raise FormatError(f"the file is too short for a table of {count} sections")
    entries = [ENTRY.unpack_from(data, start + i * ENTRY.size) for i in range(count)]
    for offset, size, kind, _ in entries:
        if offset > start or size > start - offset:
            raise FormatError(f"section {kind}: bytes {offset} to {offset + size} are outside of the {start} there are")
    return entries


def unpack(data: bytes | memoryview) -> dict[int, memoryview]:
    """The sections of a file, their checksums compared. Sections of unknown kinds are left out. Raises FormatError."""
    view = memoryview(data).cast("B").toreadonly()
    sections: dict[int, memoryview] = {}
    for offset, size, kind, crc in _entries(view):
        section = view[offset : offset + size]
        name = KIND_NAMES.get(kind, f"section {kind}")
        if kind in sections:
            raise FormatError(f"there are two {name} sections")
        if zlib.crc32(section) != crc:
            raise FormatError(f"the checksum of the {name} does not match: the file is corrupt")
        if kind in KIND_NAMES:
            sections[kind] = section
    if METADATA not in sections or view[: len(sections[METADATA])] != sections[METADATA]:
        raise FormatError("the file does not start with its metadata")
    return sections


def reseal(data: bytes) -> bytes:
    """The same file with right checksums: so that tests reach what lies behind them. Raises FormatError without a
    section table.
    """
    sealed = bytearray(data)
    entries = _entries(memoryview(data))
    start = len(data) - FOOTER.size - len(entries) * ENTRY.size
    for index, (offset, size, kind, _) in enumerate(entries):
        ENTRY.pack_into(
            sealed, start + index * ENTRY.size, offset, size, kind, zlib.crc32(data[offset : offset + size])
        )
    return bytes(sealed)

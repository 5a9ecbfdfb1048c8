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
METADATA, WEIGHTS, DEFLATED_METADATA = 0, 1, 2
KIND_NAMES = {METADATA: "metadata", WEIGHTS: "weights", DEFLATED_METADATA: "deflated metadata"}
ENTRY = struct.Struct("<QQII")  # offset, size, kind, crc32
FOOTER = struct.Struct("<I4s")  # number of entries, identifier
DEFLATED = struct.Struct("<I4s")  # size of the metadata, identifier; then a zlib stream (RFC 1950)
MAX_SECTIONS = 16
SMALL_ALIGNMENT, MAP_ALIGNMENT = 8, 64
MAX_DEFLATION = 64
"""Bytes of metadata that a byte of deflated metadata may stand for; graphs of repeated layers reach about 20."""


def pack(sections: Mapping[int, bytes], align: int = SMALL_ALIGNMENT) -> bytes:
    """A file of these sections (kind -> bytes); all but the metadata start at a multiple of `align`."""
    body = bytearray()
    table = bytearray()
    for kind in sorted(sections, key=lambda kind: (kind == WEIGHTS, kind)):
        data = sections[kind]
        if body:
            body += bytes(-len(body) % align)
        table += ENTRY.pack(len(body), len(data), kind, zlib.crc32(data))
        body += data
    body += bytes(-len(body) % 4)
    return bytes(body + table + FOOTER.pack(len(sections), IDENTIFIER))


def metadata_section(data: bytes) -> dict[int, bytes]:
    """Metadata as the section that `pack` takes: deflated where that is smaller (kind -> bytes)."""
    deflated = DEFLATED.pack(len(data), IDENTIFIER) + zlib.compress(data, zlib.Z_BEST_COMPRESSION)
    if len(deflated) < len(data) <= MAX_DEFLATION * len(deflated):
        return {DEFLATED_METADATA: deflated}
    return {METADATA: data}


def _inflated(section: memoryview) -> memoryview:
    """The metadata of a deflated section. Raises FormatError, and allocates no more than MAX_DEFLATION allows."""
    size, _ = DEFLATED.unpack_from(section)  # the identifier has been compared
    if size > MAX_DEFLATION * len(section):
        raise FormatError(f"{len(section)} bytes of deflated metadata cannot stand for {size}")
    inflater = zlib.decompressobj()
    try:
        # One byte more than there may be: with exactly `size`, the end of the stream might not be reached.
        data = inflater.decompress(section[DEFLATED.size :], size + 1)
    except zlib.error as error:
        raise FormatError(f"the deflated metadata is no zlib stream: {error}") from None
    if len(data) != size or not inflater.eof or inflater.unused_data:
        raise FormatError(f"the deflated metadata does not hold exactly the {size} bytes that it speaks of")
    return memoryview(data)


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
    """The sections of a file, their checksums compared, metadata inflated. Sections of unknown kinds are left out.

    Raises FormatError.
    """
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
    metadata = sections.get(METADATA, sections.get(DEFLATED_METADATA))
    if metadata is None or len(metadata) < DEFLATED.size or view[: len(metadata)] != metadata:
        raise FormatError("the file does not start with its metadata")
    if DEFLATED_METADATA in sections:
        if METADATA in sections:
            raise FormatError("there are metadata both deflated and not")
        sections[METADATA] = _inflated(sections.pop(DEFLATED_METADATA))
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

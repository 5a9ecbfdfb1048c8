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
METADATA, WEIGHTS, DEFLATED_METADATA, COLUMNS = 0, 1, 2, 3
KIND_NAMES = {
    METADATA: "metadata",
    WEIGHTS: "weights",
    DEFLATED_METADATA: "deflated metadata",
    COLUMNS: "metadata in columns",
}
INFLATED = {DEFLATED_METADATA: (METADATA, zlib.MAX_WBITS), COLUMNS: (COLUMNS, -zlib.MAX_WBITS)}
"""Kinds of deflated sections: what they are when inflated, and of how large a window, negative where there is no zlib
header (RFC 1951 instead of RFC 1950)."""
ENTRY = struct.Struct("<QQII")  # offset, size, kind, crc32
FOOTER = struct.Struct("<I4s")  # number of entries, identifier
DEFLATED = struct.Struct("<I4s")  # size of what follows when it is inflated, identifier
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


def deflated_columns(data: bytes) -> bytes | None:
    """The section of kind COLUMNS; None for what deflates further than MAX_DEFLATION."""
    deflater = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zlib.DEFLATED, INFLATED[COLUMNS][1])
    section = DEFLATED.pack(len(data), IDENTIFIER) + deflater.compress(data) + deflater.flush()
    return section if len(data) <= MAX_DEFLATION * len(section) else None


def _inflated(section: memoryview, wbits: int) -> memoryview:
    """What a deflated section holds. Raises FormatError, and allocates no more than MAX_DEFLATION allows."""
    size, _ = DEFLATED.unpack_from(section)  # the identifier has been compared
    if size > MAX_DEFLATION * len(section):
        raise FormatError(f"{len(section)} bytes of deflated metadata cannot stand for {size}")
    inflater = zlib.decompressobj(wbits)
    try:
        # One byte more than there may be: with exactly `size`, the end of the stream might not be reached.
        data = inflater.decompress(section[DEFLATED.size :], size + 1)
    except zlib.error as error:
        raise FormatError(f"the deflated metadata cannot be inflated: {error}") from None
    if len(data) != size or not inflater.eof or inflater.unused_data:
        raise FormatError(f"the deflated metadata does not hold exactly the {size} bytes that it speaks of")
    return memoryview(data)


def sizes(data: bytes | memoryview) -> dict[str, int]:
    """The bytes that each section takes in a file, by name. Raises FormatError without a section table."""
    view = memoryview(data).cast("B")
    return {KIND_NAMES.get(kind, f"section {kind}"): size for _, size, kind, _ in _entries(view)}


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
    """The sections of a file, their checksums compared, metadata (METADATA or COLUMNS) inflated. Sections of unknown
    kinds are left out.

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
    kinds = [kind for kind in sections if kind != WEIGHTS]
    if len(kinds) > 1:
        raise FormatError(f"there are both {' and '.join(KIND_NAMES[kind] for kind in kinds)}")
    metadata = sections[kinds[0]] if kinds else None
    if metadata is None or len(metadata) < DEFLATED.size or view[: len(metadata)] != metadata:
        raise FormatError("the file does not start with its metadata")
    if kinds[0] in INFLATED:
        kind, wbits = INFLATED[kinds[0]]
        sections[kind] = _inflated(sections.pop(kinds[0]), wbits)
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

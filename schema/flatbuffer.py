"""A FlatBuffers reader that cannot be led astray: it checks every offset, length and alignment as it reads.

The format: https://flatbuffers.dev/internals/. FlatBuffers' Python package reads without checks and has no verifier,
so reading and verifying are one step here, driven by a schema as plain data (`schema/generated/layout.py`). What
comes out are Python dicts:
nothing points back into the buffer.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from schema.errors import FormatError


class Field(NamedTuple):
    name: str
    type: str  # a scalar, "string", a table, enum or union name, or one of these in brackets; "skip" is not read
    default: Any = None
    required: bool = False


class Layout(NamedTuple):
    tables: dict[str, tuple[Field, ...]]
    enums: dict[str, tuple[str, dict[str, int]]]  # name -> (scalar type, values)
    unions: dict[str, dict[str, int]]


SCALARS = {
    "bool": struct.Struct("<?"),
    "byte": struct.Struct("<b"),
    "ubyte": struct.Struct("<B"),
    "short": struct.Struct("<h"),
    "ushort": struct.Struct("<H"),
    "int": struct.Struct("<i"),
    "uint": struct.Struct("<I"),
    "long": struct.Struct("<q"),
    "ulong": struct.Struct("<Q"),
    "float": struct.Struct("<f"),
    "double": struct.Struct("<d"),
}
NUMPY_TYPES = {
    "bool": "?",
    "byte": "i1",
    "ubyte": "u1",
    "short": "<i2",
    "ushort": "<u2",
    "int": "<i4",
    "uint": "<u4",
    "long": "<i8",
    "ulong": "<u8",
    "float": "<f4",
    "double": "<f8",
}
MAX_DEPTH = 16
UINT32, INT32, UINT16 = SCALARS["uint"], SCALARS["int"], SCALARS["ushort"]


class Reader:
    """Reads one buffer by a layout. Every failure is a FormatError that says where in the schema it happened.

    Offsets may share targets, so a small file could name one big table a million times: what has been read is charged
    against a budget of a few times the file's size.
    """

    def __init__(self, data: bytes | memoryview, layout: Layout):
        self.data = memoryview(data).cast("B")
        self.layout = layout
        self.values = {name: {v: k for k, v in values.items()} for name, (_, values) in layout.enums.items()}
        self.members = {name: {v: k for k, v in members.items()} for name, members in layout.unions.items()}
        self.budget = 8 * len(self.data) + 4096

    def root(self, table: str, identifier: bytes | None = None) -> dict[str, Any]:
        """The root table as a dict: field -> value, default, or None."""
        if len(self.data) < 8:
            raise FormatError(f"{len(self.data)} bytes are too few for a header")
        if identifier is not None and bytes(self.data[4:8]) != identifier:
            raise FormatError(f"the identifier is {bytes(self.data[4:8])!r}, not {identifier!r}")
        return self._table(self._follow(0, table), table, table, 0)

    def _span(self, start: int, size: int, align: int, place: str) -> None:
        if start < 0 or start + size > len(self.data):
            raise FormatError(f"{place}: bytes {start} to {start + size} are outside of the {len(self.data)} there are")
        if start % align:
            raise FormatError(f"{place}: offset {start} is not a multiple of {align}")
        self.budget -= size
        if self.budget < 0:
            raise FormatError(f"{place}: the tables say far more than the file holds")

    def _scalar(self, kind: str, at: int, place: str) -> Any:
        codec = SCALARS[kind]
        self._span(at, codec.size, codec.size, place)
        if kind == "bool":
            return self.data[at] != 0
        return codec.unpack_from(self.data, at)[0]

    def _follow(self, at: int, place: str) -> int:
        offset = self._scalar("uint", at, place)
        if offset == 0:
            raise FormatError(f"{place}: a null offset")
        return at + offset

    def _table(self, at: int, table: str, place: str, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise FormatError(f"{place}: nested deeper than {MAX_DEPTH} tables")
        vtable = at - self._scalar("int", at, place)
        vtable_size, table_size = (self._scalar("ushort", vtable + i, f"{place} vtable") for i in (0, 2))
        if vtable_size < 4 or vtable_size % 2 or table_size < 4:
            raise FormatError(f"{place}: a vtable of {vtable_size} bytes for a table of {table_size}")
        self._span(vtable, vtable_size, 2, f"{place} vtable")
        self._span(at, table_size, 4, place)
        result: dict[str, Any] = {}
        for index, field in enumerate(self.layout.tables[table]):
            slot = 4 + 2 * index
            offset = UINT16.unpack_from(self.data, vtable + slot)[0] if slot + 2 <= vtable_size else 0
            where = f"{place}.{field.name}"
            if offset == 0:
                if field.required:
                    raise FormatError(f"{where} is missing")
                result[field.name] = self._default(field)
                continue
            if offset < 4 or offset >= table_size:
                raise FormatError(f"{where}: offset {offset} is outside of its table of {table_size} bytes")
            result[field.name] = self._value(field, at + offset, at + table_size, where, depth, result)
        return result

    def _default(self, field: Field) -> Any:
        if field.type in self.layout.enums:
            return self._enum(field.type, field.default, field.name)
        return field.default

    def _enum(self, name: str, value: int, place: str) -> str:
        try:
            return self.values[name][value]
        except KeyError:
            raise FormatError(f"{place}: {value} is no {name} that this version knows; update xnn") from None

    def _value(self, field: Field, at: int, end: int, place: str, depth: int, before: dict[str, Any]) -> Any:
        kind = field.type
        enum = self.layout.enums.get(kind)
        scalar = enum[0] if enum else kind
        if scalar in SCALARS:
            if at + SCALARS[scalar].size > end:
                raise FormatError(f"{place}: the value runs out of its table")
            value = self._scalar(scalar, at, place)
            return self._enum(kind, value, place) if enum else value
        if kind == "skip":
            return None
        target = self._follow(at, place)
        if kind == "string":
            return self._string(target, place)
        if kind.startswith("["):
            return self._vector(target, kind[1:-1], place, depth)
        if kind in self.layout.unions:
            selected = before[field.name + "_type"]
            member = self.members[kind].get(selected)
            if member is None or member == "NONE":
                raise FormatError(f"{place}: {selected} is no member of {kind} that this version knows; update xnn")
            return member, self._table(target, member, f"{place}({member})", depth + 1)
        return self._table(target, kind, place, depth + 1)

    def _string(self, at: int, place: str) -> str:
        size = self._scalar("uint", at, place)
        self._span(at + 4, size + 1, 1, place)
        try:
            return bytes(self.data[at + 4 : at + 4 + size]).decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError(f"{place}: not UTF-8") from None

    def _vector(self, at: int, element: str, place: str, depth: int) -> Any:
        count = self._scalar("uint", at, place)
        if element in SCALARS:
            size = SCALARS[element].size
            self._span(at + 4, size * count, size, place)
            return np.frombuffer(self.data, NUMPY_TYPES[element], count, at + 4).copy()
        self._span(at + 4, 4 * count, 4, place)
        result = []
        for index in range(count):
            where = f"{place}[{index}]"
            target = self._follow(at + 4 + 4 * index, where)
            result.append(
                self._string(target, where) if element == "string" else self._table(target, element, where, depth + 1)
            )
        return result

"""Tables of a schema as columns: the values that a field has in all tables of one place, one after another.

They say the same as a FlatBuffer in far fewer bytes, since there are no offsets, and since what stands side by side is
alike, which suits deflate. FORMAT.md describes the bytes. What comes out of `read` is what `flatbuffer.Reader` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schema.errors import FormatError
from schema.flatbuffer import NUMPY_TYPES, SCALARS, Field, Layout

SAME, EACH, DIFFERENCES = range(3)  # how a column is stored
FLOATS = ("float", "double")
MAX_VARINT_BYTES = 10
MAX_EXPANSION, FEW_VALUES = 8, 4096
"""How many values the columns may say: so many for each byte, and these."""


def write(root: dict[str, Any], table: str, layout: Layout) -> bytes:
    """The columns of a root table, a dict as `flatbuffer.Reader` gives it."""
    writer = _Writer(layout)
    writer.tables(table, [root])
    return bytes(writer.data)


def read(data: bytes | memoryview, table: str, layout: Layout) -> dict[str, Any]:
    """The root table as a dict: field -> value, default, or None. Raises FormatError with the place in the schema."""
    reader = _Reader(memoryview(data).cast("B"), layout)
    (root,) = reader.tables(table, 1, table)
    if reader.at != len(reader.data):
        raise FormatError(f"{len(reader.data) - reader.at} bytes follow the last column of the metadata")
    return root


class _Writer:
    def __init__(self, layout: Layout):
        self.layout = layout
        self.data = bytearray()

    def tables(self, table: str, given: Sequence[dict[str, Any]]) -> None:
        columns = [(field, [one[field.name] for one in given]) for field in self.layout.tables[table]]
        stored = [not self._all_default(field, values) for field, values in columns]
        self.data += _varint(sum(1 << i for i, is_stored in enumerate(stored) if is_stored))
        for (field, values), is_stored in zip(columns, stored, strict=True):
            if is_stored:
                self._column(field.type, values)

    def _all_default(self, field: Field, values: list) -> bool:
        if field.type in SCALARS:
            pack = SCALARS[field.type].pack  # -0.0 is not 0.0
            return all(pack(value) == pack(field.default) for value in values)
        if field.type in self.layout.enums:
            numbers = self.layout.enums[field.type][1]
            return all(numbers[value] == field.default for value in values)
        return all(value is None for value in values)

    def _column(self, kind: str, values: list) -> None:
        if kind in self.layout.enums:
            self._integers([self.layout.enums[kind][1][value] for value in values])
        elif kind in FLOATS:
            self._floats(np.array(values, NUMPY_TYPES[kind]))
        elif kind in SCALARS:
            self._integers([int(value) for value in values])
        elif kind == "string":
            texts = [None if value is None else value.encode() for value in values]
            self._integers([0 if text is None else len(text) + 1 for text in texts])
            self.data += b"".join(text for text in texts if text is not None)
        elif kind.startswith("["):
            self._integers([0 if value is None else len(value) + 1 for value in values])
            self._elements(kind[1:-1], [element for value in values if value is not None for element in value])
        elif kind in self.layout.unions:
            for member in self.layout.unions[kind]:
                chosen = [value[1] for value in values if value is not None and value[0] == member]
                if chosen:
                    self.tables(member, chosen)
        else:
            self._integers([value is not None for value in values])
            self.tables(kind, [value for value in values if value is not None])

    def _elements(self, kind: str, values: list) -> None:
        if kind in self.layout.tables:
            self.tables(kind, values)
        elif values:
            self._column(kind, values)

    def _integers(self, numbers: list[int]) -> None:
        if len(set(numbers)) == 1:
            self.data += bytes([SAME]) + _varint(_folded(numbers[0]))
            return
        differences = [b - a for a, b in zip([0, *numbers], numbers, strict=False)]
        # Distinct values, as a guess at what deflate makes of them.
        differ = len(set(differences)) < len(set(numbers))
        self.data.append(DIFFERENCES if differ else EACH)
        for number in differences if differ else numbers:
            self.data += _varint(_folded(number))

    def _floats(self, numbers: np.ndarray) -> None:
        planes = numbers.view(np.uint8).reshape(len(numbers), -1).T
        same = (planes == planes[:, :1]).all()
        self.data.append(SAME if same else EACH)
        self.data += (planes[:, 0] if same else planes).tobytes()


class _Reader:
    """Takes columns one after another. Counts are charged against a budget before anything is made of them."""

    def __init__(self, data: memoryview, layout: Layout):
        self.data = data
        self.at = 0
        self.layout = layout
        self.names = {name: {v: k for k, v in values.items()} for name, (_, values) in layout.enums.items()}
        self.left = MAX_EXPANSION * len(data) + FEW_VALUES

    def tables(self, table: str, count: int, place: str) -> list[dict[str, Any]]:
        fields = self.layout.tables[table]
        self._charge(count * len(fields), place)
        stored = self._varint(place)
        if stored >> len(fields):
            raise FormatError(f"{place}: fields that this version does not know; update xnn")
        columns: dict[str, Sequence] = {}
        for index, field in enumerate(fields):
            where = f"{place}.{field.name}"
            if stored >> index & 1:
                columns[field.name] = self._column(field, count, where, columns)
            else:
                default = self.names[field.type][field.default] if field.type in self.names else field.default
                columns[field.name] = [default] * count
            if field.required and any(value is None for value in columns[field.name]):
                raise FormatError(f"{where} is missing")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _column(self, field: Field, count: int, place: str, before: dict[str, Sequence]) -> Sequence:
        kind = field.type
        if kind in self.layout.unions:
            return self._union(kind, before[field.name + "_type"], place)
        if kind.startswith("["):
            return self._vectors(kind[1:-1], count, place)
        if kind in self.layout.tables:
            present = self._integers(count, "bool", place)
            found = iter(self.tables(kind, sum(present), place))
            return [next(found) if here else None for here in present]
        return self._values(kind, count, place)

    def _values(self, kind: str, count: int, place: str) -> Sequence:
        """Of scalars, enums or strings."""
        if kind == "string":
            return self._strings(count, place)
        if kind in FLOATS:
            return self._floats(count, kind, place).tolist()
        if kind in SCALARS:
            numbers = self._integers(count, kind, place)
            return [number != 0 for number in numbers] if kind == "bool" else numbers
        names = self.names[kind]
        numbers = self._integers(count, self.layout.enums[kind][0], place)
        for number in numbers:
            if number not in names:
                raise FormatError(f"{place}: {number} is no {kind} that this version knows; update xnn")
        return [names[number] for number in numbers]

    def _union(self, union: str, types: Sequence[int], place: str) -> list:
        members = {number: name for name, number in self.layout.unions[union].items() if name != "NONE"}
        for number in types:
            if number and number not in members:
                raise FormatError(f"{place}: {number} is no member of {union} that this version knows; update xnn")
        tables = {
            number: iter(self.tables(name, types.count(number), f"{place}({name})"))
            for number, name in members.items()
            if number in types
        }
        return [(members[number], next(tables[number])) if number else None for number in types]

    def _vectors(self, element: str, count: int, place: str) -> list:
        lengths = self._lengths(count, place)
        total = sum(length or 0 for length in lengths)
        elements: Any
        if element in self.layout.tables:
            elements = self.tables(element, total, place)
        else:
            self._charge(total, place)
            if element in FLOATS:
                elements = self._floats(total, element, place) if total else np.zeros(0, NUMPY_TYPES[element])
            else:
                elements = self._values(element, total, place) if total else []
                if element in SCALARS:
                    elements = np.array(elements, NUMPY_TYPES[element])
        return list(_parts(elements, lengths))

    def _strings(self, count: int, place: str) -> list[str | None]:
        lengths = self._lengths(count, place)
        text = self._take(sum(length or 0 for length in lengths), place)
        try:
            return [None if part is None else bytes(part).decode("utf-8") for part in _parts(text, lengths)]
        except UnicodeDecodeError:
            raise FormatError(f"{place}: not UTF-8") from None

    def _lengths(self, count: int, place: str) -> list[int | None]:
        """None where there is nothing."""
        return [number - 1 if number else None for number in self._integers(count, "uint", place)]

    def _integers(self, count: int, kind: str, place: str) -> list[int]:
        low, high = (0, 1) if kind == "bool" else _limits(kind)
        stored = self._take(1, place)[0]
        if stored > DIFFERENCES:
            raise FormatError(f"{place}: a column of unknown kind {stored}")
        numbers, last = [], 0
        for _ in range(1 if stored == SAME else count):
            folded = self._varint(place)
            number = folded >> 1 ^ -(folded & 1)
            last = last + number if stored == DIFFERENCES else number
            if not low <= last <= high:
                raise FormatError(f"{place}: {last} is no {kind}")
            numbers.append(last)
        return numbers * count if stored == SAME else numbers

    def _floats(self, count: int, kind: str, place: str) -> np.ndarray:
        stored = self._take(1, place)[0]
        if stored > EACH:
            raise FormatError(f"{place}: a column of unknown kind {stored}")
        dtype = np.dtype(NUMPY_TYPES[kind])
        held = 1 if stored == SAME else count
        planes = np.frombuffer(self._take(dtype.itemsize * held, place), np.uint8).reshape(dtype.itemsize, held)
        return np.repeat(np.ascontiguousarray(planes.T).view(dtype)[:, 0], count // held)

    def _varint(self, place: str) -> int:
        number = 0
        for shift in range(0, 7 * MAX_VARINT_BYTES, 7):
            byte = self._take(1, place)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise FormatError(f"{place}: a number of more than {MAX_VARINT_BYTES} bytes")

    def _take(self, size: int, place: str) -> memoryview:
        if size > len(self.data) - self.at:
            raise FormatError(f"{place}: the metadata end within a column")
        self.at += size
        return self.data[self.at - size : self.at]

    def _charge(self, values: int, place: str) -> None:
        self.left -= values
        if self.left < 0:
            raise FormatError(f"{place}: the tables say far more than the file holds")


def _parts(whole: Any, lengths: Sequence[int | None]) -> Iterator[Any]:
    """Slices of these lengths, one after another."""
    at = 0
    for length in lengths:
        yield None if length is None else whole[at : at + length]
        at += length or 0


def _limits(kind: str) -> tuple[int, int]:
    info = np.iinfo(NUMPY_TYPES[kind])
    return int(info.min), int(info.max)


def _folded(number: int) -> int:
    """0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
    return 2 * number if number >= 0 else -2 * number - 1


def _varint(number: int) -> bytes:
    """Seven bits to a byte, the lowest first; the highest bit says that another follows."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)

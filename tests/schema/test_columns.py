"""Tables as columns: what is read is what was written, and what cannot be is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema import Model, columns, container, metadata, reader, write
from schema.errors import FormatError
from schema.flatbuffer import NUMPY_TYPES, SCALARS, Field, Layout
from tests.corpus import models

LAYOUT = Layout(
    {
        "Root": (
            Field("count", "uint", 3),
            Field("colour", "Colour", 1),
            Field("note", "string"),
            Field("leaves", "[Leaf]"),
            Field("one", "Leaf"),
            Field("reals", "[float]"),
            Field("numbers", "[long]"),
            Field("names", "[string]"),
            Field("more_type", "ubyte", 0),
            Field("more", "More"),
        ),
        "Leaf": (Field("size", "ulong", 0), Field("ratio", "float", 1.0), Field("is_new", "bool", False)),
        "Twig": (Field("leaf", "Leaf", required=True), Field("depth", "short", -1)),
    },
    {"Colour": ("ubyte", {"RED": 0, "GREEN": 1, "BLUE": 7})},
    {"More": {"NONE": 0, "Leaf": 1, "Twig": 5}},
)


def default(table: str) -> dict:
    names = {v: k for k, v in LAYOUT.enums["Colour"][1].items()}
    return {f.name: names[f.default] if f.type == "Colour" else f.default for f in LAYOUT.tables[table]}


def equal(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def scalars(kind: str) -> st.SearchStrategy:
    if kind == "bool":
        return st.booleans()
    if kind == "float":
        return st.floats(width=32)
    info = np.iinfo(NUMPY_TYPES[kind])
    return st.integers(int(info.min), int(info.max)) | st.integers(max(int(info.min), -3), 3)


def tables(table: str) -> st.SearchStrategy:
    fields = {f.name: values(f) for f in LAYOUT.tables[table]}
    return st.fixed_dictionaries(fields).map(_with_type)


def _with_type(table: dict) -> dict:
    if "more" in table:
        chosen = table["more"]
        table["more_type"] = 0 if chosen is None else LAYOUT.unions["More"][chosen[0]]
    return table


def values(field: Field) -> st.SearchStrategy:
    kind, absent = field.type, st.nothing() if field.required else st.none()
    if kind in SCALARS:
        return st.just(field.default) | scalars(kind)
    if kind == "Colour":
        return st.sampled_from(["RED", "GREEN", "BLUE"])
    if kind == "More":
        leaves, twigs = (st.tuples(st.just(name), tables(name)) for name in ("Leaf", "Twig"))
        return absent | leaves | twigs
    if kind == "string":
        return absent | st.text(max_size=4)
    if kind.startswith("["):
        element = kind[1:-1]
        if element in SCALARS:
            array = st.lists(scalars(element), max_size=5).map(lambda v: np.array(v, NUMPY_TYPES[element]))
            return absent | array
        return absent | st.lists(st.text(max_size=3) if element == "string" else tables(element), max_size=4)
    return absent | tables(kind)


@settings(max_examples=200, deadline=None)
@given(tables("Root"))
def test_what_is_read_is_what_was_written(root):
    assert equal(columns.read(columns.write(root, "Root", LAYOUT), "Root", LAYOUT), root)


def test_what_is_default_takes_a_byte():
    assert columns.write(default("Root"), "Root", LAYOUT) == b"\0"


def test_columns_of_one_value_and_of_differences():
    leaf = default("Leaf") | {"size": 9}
    alike = default("Root") | {"leaves": [leaf] * 500, "numbers": np.arange(10**12, 10**12 + 300)}
    data = columns.write(alike, "Root", LAYOUT)
    assert len(data) < 320  # a byte for each difference of `numbers`
    assert equal(columns.read(data, "Root", LAYOUT), alike)


def root(*column: int, field: int = 0) -> bytes:
    """The root table with one column."""
    return columns._varint(1 << field) + bytes(column)


HOSTILE = {
    "nothing": (b"", "Root: the metadata end within a column"),
    "unknown-field": (root(field=10), "Root: fields that this version does not know; update xnn"),
    "varint-of-11-bytes": (b"\xff" * 10 + b"\1", "more than 10 bytes"),
    "unknown-kind": (root(3), "Root.count: a column of unknown kind 3"),
    "unknown-kind-of-floats": (root(0, 2 * 2, 2, field=5), "Root.reals: a column of unknown kind 2"),
    "negative-count": (root(0, 1), "Root.count: -1 is no uint"),
    "uint-of-2^32": (root(0, *columns._varint(2 << 32)), "Root.count: 4294967296 is no uint"),
    "bool-of-2": (root(0, 4, 1 << 2, 0, 4, field=3), "Root.leaves.is_new: 2 is no bool"),
    "differences-that-leave-the-type": (root(0, 6, 1, 2, 2, 3, field=3), "Root.leaves.size: -1 is no ulong"),
    "unknown-enum": (root(0, 4, field=1), "Root.colour: 2 is no Colour that this version knows; update xnn"),
    "string-past-the-end": (root(0, 2 * 5, 65, field=2), "Root.note: the metadata end within a column"),
    "string-no-text": (root(0, 2 * 2, 0xFF, field=2), "Root.note: not UTF-8"),
    "floats-past-the-end": (root(0, 2 * 3, 1, 0, 0, field=5), "Root.reals: the metadata end within a column"),
    "vector-of-2^31": (root(0, *columns._varint(2 << 31), field=3), "Root.leaves: the tables say far more"),
    "numbers-2^31": (root(0, *columns._varint(2 << 31), 0, 0, field=6), "Root.numbers: the tables say far more"),
    "presence-of-2": (root(0, 4, field=4), "Root.one: 2 is no bool"),
    "required": (columns._varint(0b11 << 8) + bytes([0, 2 * 5, 0]), r"Root.more\(Twig\).leaf is missing"),
    "union-of-unknown-member": (columns._varint(0b11 << 8) + bytes([0, 2 * 3]), "Root.more: 3 is no member of More"),
    "something-behind": (root(0, 2, 0), "1 bytes follow the last column"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_columns_are_refused(name):
    data, message = HOSTILE[name]
    with pytest.raises(FormatError, match=message):
        columns.read(data, "Root", LAYOUT)


def test_streams_follow_each_other_in_columns():
    """A file's metadata in columns are those of its FlatBuffer, offsets too."""
    model = Model([max(models.graphs(), key=lambda graph: len(graph.nodes))])
    file = write(model)
    sections, plain = container.unpack(file), container.unpack(write(model, flatbuffer=True))
    assert container.COLUMNS in sections and container.METADATA in plain
    assert equal(metadata.read(sections), metadata.read(plain))
    raw = metadata.read(sections)
    inside = columns.read(sections[container.COLUMNS], metadata.ROOT, metadata.LAYOUT)
    offsets = [[s["offset"] for s in metadata._streams(root)] for root in (raw, inside)]
    assert max(offsets[0]) < len(sections[container.WEIGHTS])
    assert sum(o < 64 for o in offsets[1]) >= len(offsets[1]) - 1
    assert reader.read(file).graphs

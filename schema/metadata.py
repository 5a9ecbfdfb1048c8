"""A file's metadata: the tables of xnn.fbs as a FlatBuffer or, where that is smaller, as deflated columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schema import columns, container
from schema.errors import FormatError
from schema.flatbuffer import Field, Layout, Reader
from schema.generated import layout as generated

ROOT = "Model"
LAYOUT = Layout(
    {name: tuple(Field(*f) for f in fields) for name, fields in generated.TABLES.items()},
    {name: (generated.ENUM_TYPES[name], values) for name, values in generated.ENUMS.items()},
    generated.UNIONS,
)
STREAMS = ("values", "codebook", "positions", "channel_scale")  # of a constant, in the order in which they are written
WRAP = 1 << 64  # offsets are unsigned


def smallest(flatbuffer: bytes) -> dict[int, bytes]:
    """The metadata as the section that `container.pack` takes (kind -> bytes)."""
    root = _tables(memoryview(flatbuffer))
    end = 0
    for stream in _streams(root):
        offset = stream["offset"]
        stream["offset"], end = (offset - end) % WRAP, offset + stream["size"]
    data = columns.write(root, ROOT, LAYOUT)
    section = container.deflated_columns(data)
    if section is None or len(section) >= len(flatbuffer):
        return {container.METADATA: flatbuffer}
    try:
        columns.read(data, ROOT, LAYOUT)
    except FormatError:  # few bytes that say more than a reader takes from columns
        return {container.METADATA: flatbuffer}
    return {container.COLUMNS: section}


def read(sections: Mapping[int, memoryview]) -> dict[str, Any]:
    """The table Model of what `container.unpack` gives. Raises FormatError."""
    if container.METADATA in sections:
        return _tables(sections[container.METADATA])
    root = columns.read(sections[container.COLUMNS], ROOT, LAYOUT)
    end = 0
    for stream in _streams(root):
        stream["offset"] = (stream["offset"] + end) % WRAP
        end = stream["offset"] + stream["size"]
    return root


def _tables(flatbuffer: memoryview) -> dict[str, Any]:
    return Reader(flatbuffer, LAYOUT).root(ROOT, container.IDENTIFIER)


def _streams(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """In the order in which they are named. In columns, each one's offset is from the end of the one before."""
    for graph in root["graphs"] or []:
        for tensor in graph["tensors"] or []:
            constant = tensor["constant"] or {}
            yield from (constant[name] for name in STREAMS if constant.get(name) is not None)

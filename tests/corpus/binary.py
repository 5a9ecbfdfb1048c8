"""Files that are wrong below the level of fields: sections, checksums, offsets, vectors, tables.

cases(): name -> (file, what the FormatError must say). Checksums are right unless they are what is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import flatbuffers

from schema import container, reseal
from schema.generated import xnn_generated as fb
from schema.generated.layout import TABLES
from tests.corpus import objects

UINT32, INT32, UINT16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")
STEP = 16  # a truncated file for each so many bytes


def entry(file: bytes, index: int, **changes: int) -> bytes:
    """The file with fields of an entry of its section table replaced: offset, size, kind, crc32."""
    sections, _ = container.FOOTER.unpack_from(file, len(file) - container.FOOTER.size)
    start = len(file) - container.FOOTER.size - (sections - index) * container.ENTRY.size
    fields = dict(zip(("offset", "size", "kind", "crc32"), container.ENTRY.unpack_from(file, start), strict=True))
    changed = bytearray(file)
    container.ENTRY.pack_into(changed, start, *(fields | changes).values())
    return bytes(changed)


def patched(file: bytes, at: int, kind: struct.Struct, value: int) -> bytes:
    """The file with one number replaced, its checksums right again."""
    changed = bytearray(file)
    kind.pack_into(changed, at, value)
    return reseal(bytes(changed))


def slot(file: bytes, path: Sequence[Any]) -> int:
    """Where the field at the end of a path such as ("graphs", 0, "inputs") is stored."""
    at, kind = UINT32.unpack_from(file, 0)[0], "Model"
    where = 0
    for step in path:
        if isinstance(step, int):
            where = at + 4 + 4 * step
        else:
            index = [f[0] for f in TABLES[kind]].index(step)
            vtable = at - INT32.unpack_from(file, at)[0]
            where = at + UINT16.unpack_from(file, vtable + 4 + 2 * index)[0]
            kind = TABLES[kind][index][1].strip("[]")
        if step != path[-1] or isinstance(step, int):
            at = where + UINT32.unpack_from(file, where)[0]
    return where


def target(file: bytes, path: Sequence[Any]) -> int:
    """Where what that field refers to is stored."""
    where = slot(file, path)
    return where + UINT32.unpack_from(file, where)[0]


def shared(element: str, count: int) -> bytes:
    """A graph whose vector names one table `count` times."""
    builder = flatbuffers.Builder()
    if element == "tensors":
        one = objects.tensor(shape=[2] * 8, channelScales=[1.0, 2.0], dtype=objects.INT8).Pack(builder)
        fb.GraphStartTensorsVector(builder, count)
    else:
        one = objects.node(objects.RELU, name="relu" * 10).Pack(builder)
        fb.GraphStartNodesVector(builder, count)
    for _ in range(count):
        builder.PrependUOffsetTRelative(one)
    vector = builder.EndVector()
    fb.GraphStart(builder)
    (fb.GraphAddTensors if element == "tensors" else fb.GraphAddNodes)(builder, vector)
    graph = fb.GraphEnd(builder)
    fb.ModelStartGraphsVector(builder, 1)
    builder.PrependUOffsetTRelative(graph)
    graphs = builder.EndVector()
    fb.ModelStart(builder)
    fb.ModelAddGraphs(builder, graphs)
    builder.Finish(fb.ModelEnd(builder), container.IDENTIFIER)
    return container.pack({container.METADATA: bytes(builder.Output())})


def unfolding_constants(count: int = 400) -> bytes:
    """One stream of 256 KB named by many constants, each of which would take 16 MB when decoded."""
    bits = 1 << 21
    tensors = [objects.tensor(shape=[2]), objects.tensor()]
    for i in range(count):
        sparse = objects.constant(
            dtype=fb.DType.FLOAT64,
            values=objects.stream(8, 0),
            positions=objects.stream(bits // 8, 8, 1),
            nonzeros=1,
            channelScale=objects.stream(4, 4 * i),
        )
        tensors.append(objects.tensor(shape=[1, bits], dtype=fb.DType.FLOAT64, constant=sparse))
    return objects.sealed(objects.relu_graph(tensors=tensors), weights=bytes(8) + b"\1" + bytes(bits // 8 - 1))


def columns(data: bytes) -> bytes:
    """A file whose metadata are these columns."""
    section = container.deflated_columns(data)
    assert section is not None
    return container.pack({container.COLUMNS: section})


GRAPHS, TENSORS = b"\x08", b"\x02"  # columns of the fields graphs of Model, tensors of Graph, and no others


def cases() -> dict[str, tuple[bytes, str]]:
    sound = objects.stored([6])
    size = len(container.unpack(sound)[container.METADATA])
    inputs, nodes = ("graphs", 0, "inputs"), ("graphs", 0, "nodes")
    name = ("graphs", 0, "input_names", 0)
    root = UINT32.unpack_from(sound, 0)[0]
    conv = objects.conv([3, 1, 1, 2])
    attributes = (*nodes, 0, "attributes")
    result = {
        f"truncated-{end:05d}": (sound[:end], "too few|identifier|footer|too short|checksum|outside")
        for end in range(0, len(sound), STEP)
    }
    return result | {
        "checksum-metadata": (sound[:40] + bytes([sound[40] ^ 1]) + sound[41:], "checksum of the metadata"),
        "checksum-weights": (sound[: size + 8] + b"\xff" + sound[size + 9 :], "checksum of the weights"),
        "checksum-of-the-table": (entry(sound, 1, crc32=0x12345678), "checksum of the weights"),
        "section-past-the-end": (entry(sound, 1, size=1 << 40), "section 1: bytes .* are outside"),
        "section-wraps-around": (entry(sound, 1, offset=2**64 - 8, size=16), "section 1: bytes 18446744073709551608"),
        "section-wraps-to-its-start": (entry(sound, 1, offset=64, size=2**64 - 64), "section 1: bytes 64"),
        "section-twice": (entry(sound, 1, kind=container.METADATA), "two metadata sections"),
        "sections-2^32": (sound[:-8] + container.FOOTER.pack(2**32 - 1, b"XNN1"), "4294967295 sections"),
        "sections-none": (sound[:-8] + container.FOOTER.pack(0, b"XNN1"), "0 sections"),
        "appended": (sound + bytes(16), "footer"),
        "identifier": (sound[:4] + b"TFL3" + sound[8:], "identifier"),
        "root-offset-past-the-end": (patched(sound, 0, UINT32, 2**32 - 1), "Model: bytes .* are outside"),
        "root-offset-at-the-end": (patched(sound, 0, UINT32, size), "Model: bytes .* are outside"),
        "root-offset-null": (patched(sound, 0, UINT32, 0), "Model: a null offset"),
        "root-offset-misaligned": (patched(sound, 0, UINT32, root + 2), "Model: offset .* not a multiple of 4"),
        "vtable-before-the-start": (patched(sound, root, INT32, 2**31 - 1), "Model vtable: bytes -"),
        "vtable-past-the-end": (patched(sound, root, INT32, -(2**31)), "Model vtable: bytes .* are outside"),
        "vtable-misaligned": (patched(sound, root, INT32, INT32.unpack_from(sound, root)[0] + 1), "vtable"),
        "vtable-of-1-byte": (
            patched(sound, root - INT32.unpack_from(sound, root)[0], UINT16, 1), "Model: a vtable of 1 bytes"),
        "vector-misaligned": (
            patched(sound, slot(sound, inputs), UINT32, UINT32.unpack_from(sound, slot(sound, inputs))[0] + 2),
            r"graphs\[0\]\.inputs: offset .* is not a multiple of 4"),
        "vector-of-2^32": (patched(sound, target(sound, inputs), UINT32, 2**32 - 1), r"graphs\[0\]\.inputs: bytes"),
        "vector-of-2^30": (patched(sound, target(sound, nodes), UINT32, 2**30), r"graphs\[0\]\.nodes: bytes"),
        "vector-null": (patched(sound, slot(sound, inputs), UINT32, 0), r"graphs\[0\]\.inputs: a null offset"),
        "element-null": (patched(sound, slot(sound, (*nodes, 0)), UINT32, 0), r"nodes\[0\]: a null offset"),
        "element-far-away": (patched(sound, slot(sound, (*nodes, 0)), UINT32, 2**31), r"nodes\[0\]: bytes"),
        "string-too-long": (patched(sound, target(sound, name), UINT32, 2**31), r"input_names\[0\]: bytes"),
        "string-no-text": (patched(sound, target(sound, name) + 4, struct.Struct("<B"), 0xFF), "not UTF-8"),
        "union-null-offset": (patched(conv, slot(conv, attributes), UINT32, 0), r"\.attributes: a null offset"),
        "columns-of-nothing": (columns(b""), "Model: the metadata end within a column"),
        "columns-no-graph": (columns(b"\0"), "no graph"),
        "columns-unknown-field": (columns(b"\x80\x01"), "Model: fields that this version does not know"),
        "columns-graphs-2^31": (columns(GRAPHS + b"\0\x80\x80\x80\x80\x10\0"), "Model.graphs: the tables say far more"),
        "columns-tensors-2^30": (
            columns(GRAPHS + b"\0\x04" + TENSORS + b"\0\x80\x80\x80\x80\x08\0"), "tensors: the tables say far more"),
        "columns-cut-off": (columns(GRAPHS + b"\0\x04" + TENSORS + b"\1"), "graphs.tensors: the metadata end within"),
        "columns-and-more": (columns(b"\0\0"), "1 bytes follow the last column"),
        "tables-of-one-tensor": (shared("tensors", 5000), r"tensors\[[0-9]+\].*far more than the file holds"),
        "tables-of-one-node": (shared("nodes", 5000), r"nodes\[[0-9]+\].*far more than the file holds"),
        "constants-of-one-stream": (unfolding_constants(), "graph 0, tensor [0-9]+: .*far more than the file holds"),
    }  # fmt: skip

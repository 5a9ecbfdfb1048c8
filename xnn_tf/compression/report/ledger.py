"""Where the bytes of an `.xnn` file are: by layer, and by what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import schema
from schema import container, metadata
from schema.coding import frequencies

KINDS = ("values", "indices", "positions", "codebooks", "scales", "tables")
_LANES = 1  # byte of a rANS stream before its table of frequencies


@dataclass
class LayerBytes:
    """The streams of one layer's weights, in bytes.

    Attributes:
        layer: the name of its node in the file, which is the Keras layer's.
        bytes: by kind: `values`, or `indices` into `codebooks`; `positions` of what is not zero; channel `scales`; and
            `tables` of frequencies, which are parts of entropy-coded streams.
        weights: how many numbers the streams say.
        zeros: how many of them are zero.
        distinct: how many different numbers the largest of its constants has, zero aside.
    """

    layer: str
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    weights: int = 0
    zeros: int = 0
    distinct: int = 0
    largest: int = 0

    @property
    def total(self) -> int:
        return sum(self.bytes.values())


@dataclass(frozen=True)
class Ledger:
    """Every byte of a file.

    Attributes:
        layers: in the order in which they first run.
        header: bytes that are not of weights: graph, names, checksums, padding.
        total: bytes of the file: the sum of all.
    """

    layers: tuple[LayerBytes, ...]
    header: int
    total: int

    def of_kind(self, kind: str) -> int:
        return sum(layer.bytes[kind] for layer in self.layers)


def ledger(xnn: bytes) -> Ledger:
    """Reads it from a file. A stream that several layers share counts for the first of them."""
    sections = container.unpack(xnn)
    raw = metadata.read(sections)
    weights = sections.get(container.WEIGHTS, memoryview(b""))
    layers: dict[str, LayerBytes] = {}
    counted: set[tuple[int, int]] = set()
    for graph in raw["graphs"]:
        for node in graph["nodes"]:
            layer = layers.setdefault(node["name"] or "", LayerBytes(node["name"] or ""))
            for index in node["inputs"]:
                if index >= 0 and (constant := graph["tensors"][index]["constant"]) is not None:
                    for kind, size in _streams(constant, weights, counted):
                        layer.bytes[kind] += size
    for graph_read in schema.read(xnn).graphs:
        _count_values(graph_read, layers)
    found = tuple(layer for layer in layers.values() if layer.total)
    return Ledger(found, len(xnn) - sum(layer.total for layer in found), len(xnn))


def _streams(constant: dict[str, Any], weights: memoryview, counted: set[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    kinds = {"values": "values", "codebook": "codebooks", "positions": "positions", "channel_scale": "scales"}
    if constant["codebook"] is not None:
        kinds["values"] = "indices"
    for name, kind in kinds.items():
        stream = constant[name]
        if stream is None or (stream["offset"], stream["size"]) in counted:
            continue
        counted.add((stream["offset"], stream["size"]))
        table = 0
        if stream["coding"] == "RANS":
            table = _LANES + frequencies.read(weights[stream["offset"] + _LANES :][: stream["size"]])[1]
        yield kind, stream["size"] - table
        yield "tables", table


def _count_values(graph: schema.Graph, layers: dict[str, LayerBytes]) -> None:
    seen = set()
    for node in graph.nodes:
        layer = layers.get(node.name)
        for tensor in node.inputs:
            if layer is None or tensor is None or tensor.constant is None or tensor.constant in seen:
                continue
            seen.add(tensor.constant)
            values = np.asarray(tensor.constant.values)
            layer.weights += values.size
            layer.zeros += int(np.count_nonzero(values == 0))
            if values.size > layer.largest:
                layer.largest = values.size
                layer.distinct = len(np.unique(values[values != 0]))

"""Where the bytes of an `.xnn` file are: by layer, and by what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schema import container, metadata, reader
from schema.coding import frequencies
from schema.graph import Graph, Model

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
        header: bytes that are not of layers' weights: graph, names, initial states, checksums, padding.
        total: bytes of the file: the sum of all.
    """

    layers: tuple[LayerBytes, ...]
    header: int
    total: int

    def of_kind(self, kind: str) -> int:
        return sum(layer.bytes[kind] for layer in self.layers)


def ledger(xnn: bytes) -> Ledger:
    """Reads it from a file. A stream that several layers share counts for the first of them. Raises FormatError."""
    layers: dict[str, LayerBytes] = {}
    model = reader.read(xnn)
    for graph, nodes in zip(model.graphs, by_node(xnn), strict=True):
        for node, found_bytes in zip(graph.nodes, nodes, strict=True):
            layer = layers.setdefault(node.name, LayerBytes(node.name))
            for kind, size in found_bytes.items():
                layer.bytes[kind] += size
    for graph in model.graphs:
        _count_values(graph, layers)
    found = tuple(layer for layer in layers.values() if layer.total)
    return Ledger(found, len(xnn) - sum(layer.total for layer in found), len(xnn))


def by_layer(model: Model, xnn: bytes) -> dict[str, int]:
    """Bytes of each layer's weights in a file that has been read, by the names of its nodes."""
    found: dict[str, int] = {}
    for graph, nodes in zip(model.graphs, by_node(xnn), strict=True):
        for node, sizes in zip(graph.nodes, nodes, strict=True):
            found[node.name] = found.get(node.name, 0) + sum(sizes.values())
    return found


def by_node(xnn: bytes | memoryview) -> list[list[dict[str, int]]]:
    """Of each graph of a file, of each of its nodes: bytes by kind. A stream that several nodes share counts for the
    first of them. Initial states are of no node. Raises FormatError.
    """
    sections = container.unpack(xnn)
    weights = sections.get(container.WEIGHTS, memoryview(b""))
    counted: set[tuple[int, int]] = set()
    return [
        [_of_node(node, graph["tensors"], weights, counted) for node in graph["nodes"] or []]
        for graph in metadata.read(sections)["graphs"] or []
    ]


def _of_node(
    node: dict[str, Any], tensors: list[dict[str, Any]], weights: memoryview, counted: set[tuple[int, int]]
) -> dict[str, int]:
    found = dict.fromkeys(KINDS, 0)
    for index in node["inputs"] if node["inputs"] is not None else ():
        constant = tensors[index]["constant"] if index >= 0 else None
        if constant is not None:
            for kind, size in _streams(constant, weights, counted):
                found[kind] += size
    return found


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


def _count_values(graph: Graph, layers: dict[str, LayerBytes]) -> None:
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

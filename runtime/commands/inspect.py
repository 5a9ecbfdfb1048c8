"""`python -m runtime inspect`: what is in a file, node by node."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import schema
from runtime.signature import describe
from schema import container, inference, ledger
from schema.graph import Graph, Tensor

COLUMNS = ("layer", "op", "output", "bytes", "weights")
OTHER = "(graph, names, checksums)"  # bytes of no node


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    model = schema.read(options.model)
    graph, data = model.graph, Path(options.model).read_bytes()
    types = inference.infer(graph).types
    inputs = [describe(n, t, t.shape) for n, t in zip(graph.argument_names, graph.arguments, strict=True)]
    outputs = [describe(n, t, types[t].shape) for n, t in zip(graph.result_names, graph.results, strict=True)]
    states = [describe(n, t, t.shape) for n, t in zip(graph.state_names, graph.state, strict=True)]
    sizes = {g: [sum(kinds.values()) for kinds in n] for g, n in zip(model.graphs, ledger.by_node(data), strict=True)}
    rows = list(_rows(graph, sizes))
    besides = len(data) - sum(row["bytes"] for row in rows)
    sections = container.sizes(data)
    if options.json:
        summary = {
            "model": options.model,
            "bytes": len(data),
            "sections": sections,
            "requantization": model.requantization,
            "producer": model.producer,
            "metadata": model.metadata,
            "inputs": [str(i) for i in inputs],
            "outputs": [str(o) for o in outputs],
            "states": [str(s) for s in states],
            "nodes": rows,
            "besides": besides,
        }
        print(json.dumps(summary))
        return
    print(f"{options.model}: {len(data)} bytes ({', '.join(f'{n} {size}' for n, size in sections.items())})")
    print(f"signature '{graph.name}', requantization {model.requantization}, made by {model.producer or 'unknown'}")
    for key, value in model.metadata.items():
        print(f"  {key}: {value}")
    for info in inputs:
        print(f"  input  {info}")
    for info in outputs:
        print(f"  output {info}")
    for info in states:
        print(f"  state  {info}")
    _print_table([*rows, dict.fromkeys(COLUMNS, "") | {"layer": OTHER, "bytes": besides}])


def _rows(graph: Graph, sizes: dict[Graph, list[int]], scope: str = "") -> Iterator[dict]:
    """The nodes in order; below each that runs graphs, their nodes, with the graph's name in front.

    sizes: bytes of each graph's nodes.
    """
    types = inference.infer(graph).types
    for node, size in zip(graph.nodes, sizes[graph], strict=True):
        row = _row(node, types, size)
        yield row | {"layer": f"{scope}{row['layer']}"}
        for name, inner in node.subgraphs.items():
            yield from _rows(inner, sizes, f"{scope}{node.name}/{name}: ")


def _row(node: schema.Node, types: dict[Tensor, schema.TensorType], size: int) -> dict:
    constants = [t for t in node.inputs if t is not None and t.is_constant]
    return {
        "layer": node.name,
        "op": node.op,
        "output": ", ".join(str(types[t]) for t in node.outputs),
        "bytes": size,
        "weights": ", ".join(str(t.type) for t in constants),
    }


def _print_table(rows: list[dict]) -> None:
    widths = {c: max([len(str(row[c])) for row in rows] + [len(c)]) for c in COLUMNS}
    for row in [{c: c for c in COLUMNS}, *rows]:
        cells = [str(row[c]).rjust(widths[c]) if c == "bytes" else str(row[c]).ljust(widths[c]) for c in COLUMNS]
        print("  ".join(cells).rstrip())

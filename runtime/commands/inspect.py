"""`python -m runtime inspect`: what is in a file, node by node."""

from __future__ import annotations

import argparse
import json
import os

import schema
from runtime.signature import describe
from schema import container, inference
from schema.graph import Tensor
from schema.ops.base import attribute_dict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    model = schema.read(options.model)
    graph = model.graph
    types = inference.infer(graph).types
    rows = []
    for node in graph.nodes:
        constants = [t for t in node.inputs if t is not None and t.is_constant]
        rows.append(
            {
                "layer": node.name,
                "op": node.op,
                "output": ", ".join(str(types[t]) for t in node.outputs),
                "weights": ", ".join(str(t.type) for t in constants),
                "bytes": sum(stored_bytes(t) for t in constants),
                "attributes": {k: v for k, v in attribute_dict(node.attributes).items() if v != _default(node, k)},
            }
        )
    size = os.path.getsize(options.model)
    if options.json:
        print(
            json.dumps({"model": options.model, "bytes": size, "metadata": model.metadata, "nodes": rows}, default=str)
        )
        return
    with open(options.model, "rb") as file:
        sections = container.unpack(file.read())
    print(
        f"{options.model}: {size} bytes ({', '.join(f'{container.KIND_NAMES[k]} {len(s)}' for k, s in sections.items())})"
    )
    print(
        f"signature '{graph.name}', {model.requantization}" + "".join(f", {k}: {v}" for k, v in model.metadata.items())
    )
    for name, tensor in zip(graph.input_names, graph.inputs, strict=True):
        print(f"  input  {describe(name, tensor, tensor.shape)}")
    for name, tensor in zip(graph.output_names, graph.outputs, strict=True):
        print(f"  output {describe(name, tensor, types[tensor].shape)}")
    widths = [max([len(str(row[key])) for row in rows] + [len(key)]) for key in ("layer", "op", "output", "bytes")]
    header = ("layer", "op", "output", "bytes", "weights")
    for row in [dict.fromkeys(header) | {k: k for k in header}, *rows]:
        cells = [
            str(row[k]).ljust(w) if k != "bytes" else str(row[k]).rjust(w) for k, w in zip(header, widths, strict=False)
        ]
        print("  ".join([*cells, str(row["weights"])]).rstrip())


def stored_bytes(tensor: Tensor) -> int:
    """Bytes of a constant's streams in the file."""
    from schema.coding import constant as constant_coding

    assert tensor.constant is not None
    return sum(len(stream.data) for _, stream in constant_coding.encode(tensor.constant, tensor.dtype).streams())


def _default(node: schema.Node, name: str):
    return getattr(type(node.attributes)(), name)

"""f(x), f(x) -> f(x) once, read by both. Equal small constants count as the same operand."""

from __future__ import annotations

from typing import Any

from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.base import attribute_dict

SMALL = 1024
"""Bytes up to which constants are compared by value; larger ones are the same only as one tensor."""
COMMUTES = ("ADD", "MUL", "MAXIMUM", "MINIMUM")


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    first: dict[Any, Node] = {}
    for node in rewriter.nodes():
        key = _key(node)
        same = first.setdefault(key, node)
        if same is node:
            continue
        if any(a.quantization != b.quantization for a, b in zip(node.outputs, same.outputs, strict=True)):
            continue
        if any(rewriter.is_output(tensor) for tensor in node.outputs):
            continue
        for tensor, kept in zip(node.outputs, same.outputs, strict=True):
            rewriter.replace_uses(tensor, kept)
        changes.append(f"{layer(node)}: the same {node.op} as in {layer(same)}")
    rewriter.commit()
    return changes


def _key(node: Node) -> Any:
    inputs = [_operand(tensor) for tensor in node.inputs]
    if node.op in COMMUTES:
        inputs.sort(key=hash)
    return node.op, tuple(attribute_dict(node.attributes).items()), tuple(inputs), len(node.outputs)


def _operand(tensor: Tensor | None) -> Any:
    if tensor is None or tensor.constant is None or tensor.quantization is not None:
        return tensor if tensor is None else id(tensor)
    value = tensor.constant.values
    if value.nbytes > SMALL or tensor.constant.channel_scale is not None:
        return id(tensor)
    return str(tensor.dtype), value.shape, value.tobytes()

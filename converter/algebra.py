"""Reading formulas out of graphs: products and sums with scalar constants, however they are spelled."""

from __future__ import annotations

from collections.abc import Iterator

from converter.constants import operand
from converter.rewriter import Rewriter
from schema.graph import Node, Tensor

AFFINE = ("ADD", "SUB", "MUL", "DIV", "NEG")


def _step(rewriter: Rewriter, tensor: Tensor, scale: float, offset: float) -> tuple[Tensor, float, float] | None:
    """scale * tensor + offset as (x, scale, offset) of what the tensor is computed from by one scalar operation."""
    node = rewriter.producer(tensor, *AFFINE)
    if node is None:
        return None
    if node.op == "NEG":
        x = node.inputs[0]
        return None if x is None else (x, -scale, offset)
    pair = operand(node)
    if pair is None or node.attributes.activation != "NONE":
        return None
    x, value = pair
    if value.size != 1 or (x.shape is None and value.ndim) or value.ndim > len(x.shape or ()):
        return None
    number, first = float(value.reshape(())), x is node.inputs[0]
    if node.op == "ADD":
        return x, scale, offset + scale * number
    if node.op == "SUB":
        return (x, scale, offset - scale * number) if first else (x, -scale, offset + scale * number)
    if node.op == "MUL":
        return x, scale * number, offset
    return (x, scale / number, offset) if first and number else None


def affine_of(rewriter: Rewriter, tensor: Tensor | None, base: Tensor) -> tuple[float, float] | None:
    """(scale, offset) where tensor = scale * base + offset, None where it is not seen to be."""
    current = (tensor, 1.0, 0.0)
    while current is not None and current[0] is not None:
        if current[0] is base:
            return current[1], current[2]
        current = _step(rewriter, *current)
    return None


def affine_of_op(rewriter: Rewriter, tensor: Tensor | None, *ops: str) -> tuple[Node, float, float] | None:
    """(node, scale, offset) where tensor = scale * node's output + offset and the node is of one of these ops."""
    current = (tensor, 1.0, 0.0)
    while current is not None and current[0] is not None:
        node = rewriter.producer(current[0], *ops)
        if node is not None:
            return node, current[1], current[2]
        current = _step(rewriter, *current)
    return None


def multiples(rewriter: Rewriter, tensor: Tensor | None) -> Iterator[tuple[Tensor, float]]:
    """(x, factor) where tensor = factor * x: the tensor itself, then what it is a multiple of."""
    current = (tensor, 1.0, 0.0)
    while current is not None and current[0] is not None and current[2] == 0.0:
        yield current[0], current[1]
        current = _step(rewriter, *current)


def products(rewriter: Rewriter, root: Node) -> Iterator[tuple[float, Tensor, Tensor]]:
    """(factor, x, gate) with root's output = factor * x * gate: each way to read it, x with and without own factors.

    root is a MUL or DIV node, of which the outermost one yields most.
    """
    for tensor, factor in multiples(rewriter, root.outputs[0]):
        node = rewriter.producer(tensor, "MUL")
        if node is None or node.attributes.activation != "NONE":
            continue
        a, b = node.inputs
        if a is None or b is None or a.is_constant or b.is_constant:
            continue
        for left, gate in ((a, b), (b, a)):
            for x, inner in multiples(rewriter, left):
                yield factor * inner, x, gate
        return

"""f(x) -> x where f changes nothing: RESHAPE to the same shape, TRANSPOSE that keeps the order, PAD by nothing, CAST
to the same dtype, MUL and DIV by 1, ADD and SUB of 0, POW 1, CONCATENATION of one, SLICE and STRIDED_SLICE of
everything, TILE once, BROADCAST_TO the same shape, SPLIT in one.
"""

from __future__ import annotations

from collections.abc import Callable

from converter.constants import is_float, uniform, value_of
from converter.rewriter import Rewriter, layer
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node, Tensor


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes(*RULES):
        source = RULES[node.op](shapes, node)
        if source is None or len(node.outputs) != 1:
            continue
        (output,) = node.outputs
        same = (
            source.dtype == output.dtype and source.quantization == output.quantization and shapes.same(source, output)
        )
        if same and rewriter.bypass(node, source):
            changes.append(f"{layer(node)}: {node.op} changes nothing")
    rewriter.commit()
    return changes


Rule = Callable[[SymbolicShapes, Node], "Tensor | None"]
"""The input that the node returns unchanged if its shape and dtype are those of the output; None for a node that does
more.
"""


def _first(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    return node.inputs[0]


def _second(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    return node.inputs[1]


def _only(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _transpose(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    x, perm = node.inputs
    value, dims = value_of(perm), shapes.dims(x)
    if value is None or dims is None:
        return None
    moved = [int(axis) % len(dims) for axis in value]
    return x if moved == sorted(moved) else None


def _zeros(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    amounts = value_of(node.inputs[1])
    return node.inputs[0] if amounts is not None and not amounts.any() else None


def _blocks(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    block, amounts = value_of(node.inputs[1]), value_of(node.inputs[2])
    return (
        node.inputs[0]
        if block is not None and amounts is not None and (block == 1).all() and not amounts.any()
        else None
    )


def _strided_slice(shapes: SymbolicShapes, node: Node) -> Tensor | None:
    strides = value_of(node.inputs[3])
    masks = node.attributes.new_axis_mask | node.attributes.shrink_axis_mask
    # Of slices in steps of one, only those through everything keep the shape.
    return node.inputs[0] if strides is not None and (strides == 1).all() and not masks else None


def _neutral(value: float) -> Rule:
    """A binary op whose second operand (either one, where it commutes) is `value` everywhere."""

    def rule(shapes: SymbolicShapes, node: Node) -> Tensor | None:
        a, b = node.inputs
        if a is None or not is_float(a) or _activation(node) != "NONE":
            return None
        if uniform(b) == value:
            return a
        return b if node.op in ("ADD", "MUL") and uniform(a) == value else None

    return rule


def _activation(node: Node) -> str:
    return getattr(node.attributes, "activation", "NONE")


RULES: dict[str, Rule] = {
    "RESHAPE": _first,
    "SQUEEZE": _first,
    "BROADCAST_TO": _first,
    "CAST": _first,
    "TILE": _first,
    "SLICE": _first,
    "SPLIT": _second,
    "SPLIT_V": _first,
    "CONCATENATION": _only,
    "TRANSPOSE": _transpose,
    "PAD": _zeros,
    "PADV2": _zeros,
    "MIRROR_PAD": _zeros,
    "SPACE_TO_BATCH_ND": _blocks,
    "BATCH_TO_SPACE_ND": _blocks,
    "STRIDED_SLICE": _strided_slice,
    "ADD": _neutral(0.0),
    "SUB": _neutral(0.0),
    "MUL": _neutral(1.0),
    "DIV": _neutral(1.0),
    "POW": _neutral(1.0),
}

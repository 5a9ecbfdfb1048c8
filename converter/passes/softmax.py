"""DIV(EXP(SUB(x, max)), SUM(EXP(SUB(x, max)))) -> SOFTMAX(x), also without the maximum; SOFTMAX(MUL(x, c)) ->
SOFTMAX(x, beta=c) for c > 0, which is how attention scales its scores.
"""

from __future__ import annotations

import dataclasses

from converter.algebra import multiples
from converter.constants import is_float, value_of
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import SoftmaxAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("DIV", "SOFTMAX"):
        if node.op == "SOFTMAX":
            if _take_factor(rewriter, node):
                changes.append(f"{layer(node)}: SOFTMAX scales by {node.attributes.beta:g}")
            continue
        found = _match(rewriter, node)
        if found is not None:
            rewriter.rewrite(node, "SOFTMAX", [found[0]], SoftmaxAttributes(axis=found[1]))
            changes.append(f"{layer(node)}: recognised as SOFTMAX over axis {found[1]}")
    rewriter.commit()
    return changes


def _match(rewriter: Rewriter, node: Node) -> tuple[Tensor, int] | None:
    """(x, axis) of a quotient of exponentials by their sum."""
    above, below = node.inputs
    exponential, total = rewriter.producer(above, "EXP"), rewriter.producer(below, "SUM")
    if exponential is None or total is None or total.inputs[0] is not above or not total.attributes.keep_dims:
        return None
    axis, shifted = _axis(total), exponential.inputs[0]
    if axis is None or shifted is None or not is_float(shifted) or node.attributes.activation != "NONE":
        return None
    shift = rewriter.producer(shifted, "SUB")
    if shift is None or shift.attributes.activation != "NONE":
        return shifted, axis
    largest = rewriter.producer(shift.inputs[1], "REDUCE_MAX")
    x = shift.inputs[0]
    # Any shift that is constant along the axis cancels out; without knowing that it is, only the plain form is right.
    if largest is not None and x is not None and largest.inputs[0] is x and _axis(largest) == axis:
        return (x, axis) if largest.attributes.keep_dims else (shifted, axis)
    return shifted, axis


def _axis(reduction: Node) -> int | None:
    """The one axis that is reduced, counted from the front."""
    axes, x = value_of(reduction.inputs[1]), reduction.inputs[0]
    if axes is None or axes.size != 1 or x is None or x.shape is None:
        return None
    return int(axes.reshape(())) % len(x.shape)


def _take_factor(rewriter: Rewriter, node: Node) -> bool:
    x, *mask = node.inputs
    if x is None or not is_float(x) or rewriter.only_consumer(x) is not node:
        return False
    for inner, factor in list(multiples(rewriter, x))[::-1]:
        if inner is not x and factor > 0.0 and inner.shape == x.shape:
            rewriter.rewrite(
                node,
                inputs=[inner, *mask],
                attributes=dataclasses.replace(node.attributes, beta=node.attributes.beta * factor),
            )
            return True
    return False

"""MAXIMUM(x, 0) -> RELU(x); MINIMUM(RELU(x), 6) -> RELU6(x); MINIMUM(MAXIMUM(x, a), b) -> CLAMP(x, a, b), in any
order and number; f(x) -> x for such an f where x is known to lie in its range already.
"""

from __future__ import annotations

from converter.constants import is_float
from converter.ranges import bounds_of, clip, named, value_range
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import ClampAttributes

NAMES = ("RELU", "RELU6", "RELU_N1_TO_1", "CLAMP", "MAXIMUM", "MINIMUM")


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes(*NAMES):
        read = bounds_of(node)
        if read is None or not is_float(node.outputs[0]):
            continue
        x, low, high = read
        before = node.op
        lowest, highest = value_range(rewriter, x)
        if low <= lowest and highest <= high and x.shape == node.outputs[0].shape and rewriter.bypass(node, x):
            changes.append(f"{layer(node)}: {before} changes nothing")
            continue
        x, low, high = _merge(rewriter, x, low, high)
        if _become(rewriter, node, x, low, high):
            changes.append(f"{layer(node)}: {before} became {_text(node)}")
    rewriter.commit()
    return changes


def _merge(rewriter: Rewriter, x: Tensor, low: float, high: float) -> tuple[Tensor, float, float]:
    """Take in the clamps before this one that nobody else reads."""
    while True:
        inner = rewriter.producer(x, *NAMES)
        read = None if inner is None or rewriter.only_consumer(x) is None else bounds_of(inner)
        if read is None or read[0].shape != x.shape:
            return x, low, high
        x, inner_low, inner_high = read
        low, high = clip(inner_low, low, high), clip(inner_high, low, high)


def _become(rewriter: Rewriter, node: Node, x: Tensor, low: float, high: float) -> bool:
    """Make it the clamp's own op, if there is one. MAXIMUM and MINIMUM alone stay unless they are RELU."""
    op = named(low, high)
    if op == "CLAMP" and float("inf") in (high, -low):
        return False
    attributes = ClampAttributes(low, high) if op == "CLAMP" else None
    if (node.op == op and node.inputs[0] is x) or x.shape != node.outputs[0].shape:
        return False
    rewriter.rewrite(node, op, [x], attributes)
    return True


def _text(node: Node) -> str:
    a = node.attributes
    return f"CLAMP to {a.min:g}..{a.max:g}" if node.op == "CLAMP" else node.op

"""MEAN(x, axes of size 1) -> SQUEEZE(x), or x where the axes are kept; and so for SUM, REDUCE_MAX, REDUCE_MIN and for
poolings whose windows hold one pixel each.
"""

from __future__ import annotations

from converter.constants import is_float, value_of
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node
from schema.ops.attributes import SqueezeAttributes
from schema.ops.windows import along

REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes(*REDUCTIONS, *POOLS):
        x = node.inputs[0]
        if not is_float(x) or x.shape is None:
            continue
        line = f"{layer(node)}: {node.op} of one number at a time"
        done = _drop_pool(rewriter, node) if node.op in POOLS else _drop_reduction(rewriter, node)
        if done:
            changes.append(line)
    rewriter.commit()
    return changes


def _drop_pool(rewriter: Rewriter, node: Node) -> bool:
    one = along(node.attributes, "filter", "hw") == along(node.attributes, "stride", "hw") == (1, 1)
    return one and node.attributes.activation == "NONE" and rewriter.bypass(node, node.inputs[0])


def _drop_reduction(rewriter: Rewriter, node: Node) -> bool:
    x, axes = node.inputs[0], value_of(node.inputs[1])
    if axes is None or not axes.size:
        return False
    reduced = sorted({int(axis) % len(x.shape) for axis in axes.flat})
    if any(x.shape[axis] != 1 for axis in reduced):
        return False
    if node.attributes.keep_dims:
        return rewriter.bypass(node, x)
    rewriter.rewrite(node, "SQUEEZE", [x], SqueezeAttributes(tuple(reduced)))
    return True

"""MUL(MUL(x, a), b) -> MUL(x, a * b); ADD(ADD(x, a), b) -> ADD(x, a + b); MUL(ADD(x, a), b) -> ADD(MUL(x, b), a * b)
where |a * b| is small enough that nothing is lost in rounding. For constants a, b of real numbers.
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, operand
from converter.passes.fold_input_scale import LARGEST_OFFSET
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("ADD", "MUL"):
        line = _merge(rewriter, node)
        if line is not None:
            changes.append(line)
    rewriter.commit()
    return changes


def _merge(rewriter: Rewriter, node: Node) -> str | None:
    outer = operand(node)
    inner = None if outer is None else rewriter.producer(outer[0], "ADD", "MUL")
    read = None if inner is None else operand(inner)
    if outer is None or inner is None or read is None or rewriter.only_consumer(outer[0]) is not node:
        return None
    x, a, b = read[0], read[1].astype(np.float64), outer[1].astype(np.float64)
    if inner.attributes.activation != "NONE" or x.shape != node.outputs[0].shape:
        return None
    if node.op == inner.op:
        both = a + b if node.op == "ADD" else a * b
        if both.size > max(a.size, b.size) or not np.isfinite(both).all():
            return None
        rewriter.rewrite(node, inputs=[x, constant(f"{node.name}/{node.op.lower()}", both.astype(x.dtype))])
        return f"{layer(inner)} and {layer(node)}: {node.op} of two constants became one"
    if node.op == "MUL" and (a * b).size <= max(a.size, b.size) and np.abs(a * b).max() <= LARGEST_OFFSET:
        attributes = inner.attributes
        scaled = rewriter.add("MUL", [x, constant(f"{node.name}/mul", b.astype(x.dtype))], attributes, before=node)
        addend = constant(f"{node.name}/add", (a * b).astype(x.dtype))
        rewriter.rewrite(node, "ADD", [scaled, addend])
        return f"{layer(node)}: factor moved before the addend of {layer(inner)}"
    return None

"""ADD(c, x) -> ADD(x, c); MUL(c, x) -> MUL(x, c); SUB(x, c) -> ADD(x, -c); SUB(0, x) -> NEG(x);
DIV(x, c) -> MUL(x, 1/c), for real
constants.

One spelling of each, so that the other rewrites need to know no more. 1/c is rounded once.
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, operand
from converter.rewriter import Rewriter, layer
from schema.graph import Graph


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("ADD", "SUB", "MUL", "DIV"):
        pair = operand(node)
        if pair is None:
            continue
        x, value = pair
        first = x is node.inputs[0]
        if node.op in ("ADD", "MUL"):
            if first:
                continue
            rewriter.rewrite(node, inputs=[x, node.inputs[0]])
            changes.append(f"{layer(node)}: constant made the second operand of {node.op}")
        elif node.op == "SUB" and not value.any() and node.attributes.activation == "NONE" and not first:
            if x.shape == node.outputs[0].shape:
                rewriter.rewrite(node, "NEG", [x], None)
                changes.append(f"{layer(node)}: SUB from 0 became NEG")
        elif first and node.op == "SUB":
            rewriter.rewrite(node, "ADD", [x, constant(f"{node.name}/addend", -value)])
            changes.append(f"{layer(node)}: SUB became ADD")
        elif first and node.op == "DIV":
            with np.errstate(all="ignore"):
                inverse = (1.0 / value.astype(np.float64)).astype(value.dtype)
            if np.isfinite(inverse).all() and inverse.all():
                rewriter.rewrite(node, "MUL", [x, constant(f"{node.name}/factor", inverse)])
                changes.append(f"{layer(node)}: DIV became MUL")
    rewriter.commit()
    return changes

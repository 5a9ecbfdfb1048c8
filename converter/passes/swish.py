"""MUL(x, LOGISTIC(x)) -> SWISH(x).

Formula: x * sigmoid(x) (Ramachandran et al. 2017, Searching for Activation Functions).
"""

from __future__ import annotations

from converter.constants import is_float
from converter.rewriter import Rewriter, layer
from schema.graph import Graph


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("MUL"):
        if node.attributes.activation != "NONE" or not is_float(node.outputs[0]):
            continue
        a, b = node.inputs
        for x, gate in ((a, b), (b, a)):
            sigmoid = rewriter.producer(gate, "LOGISTIC")
            if x is not None and sigmoid is not None and sigmoid.inputs[0] is x:
                rewriter.rewrite(node, "SWISH", [x], None)
                changes.append(f"{layer(node)}: recognised as SWISH")
                break
    rewriter.commit()
    return changes

"""ADD(RELU(x), MUL(-a, RELU(NEG(x)))) -> PRELU(x, a), LEAKY_RELU(x, a) where a is one number; so with SUB and a;
MAXIMUM(x, MUL(x, a)) -> LEAKY_RELU(x, a) for 0 <= a <= 1.

The first is how Keras spells PReLU.
"""

from __future__ import annotations

import numpy as np

from converter.algebra import affine_of
from converter.constants import constant, is_float, operand
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import AlphaAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("ADD", "SUB", "MAXIMUM"):
        found = _maximum(rewriter, node) if node.op == "MAXIMUM" else _two_sided(rewriter, node)
        if found is None:
            continue
        x, alpha = found
        if alpha.size == 1:
            rewriter.rewrite(node, "LEAKY_RELU", [x], AlphaAttributes(float(alpha.reshape(()))))
        else:
            rewriter.rewrite(node, "PRELU", [x, constant(f"{node.name}/alpha", alpha)], None)
        changes.append(f"{layer(node)}: recognised as {node.op}")
    rewriter.commit()
    return changes


def _two_sided(rewriter: Rewriter, node: Node) -> tuple[Tensor, np.ndarray] | None:
    """(x, slope below zero) of ADD(RELU(x), c * RELU(-x)) or SUB(RELU(x), c * RELU(-x))."""
    if node.attributes.activation != "NONE" or not is_float(node.outputs[0]):
        return None
    a, b = node.inputs
    for positive, negative in ((a, b), (b, a)) if node.op == "ADD" else ((a, b),):
        above, scaled = rewriter.producer(positive, "RELU"), rewriter.producer(negative, "MUL", "RELU")
        if above is None or scaled is None or above.inputs[0] is None:
            continue
        x, factor = above.inputs[0], np.ones((), node.outputs[0].dtype)
        below = scaled if scaled.op == "RELU" else None
        if scaled.op == "MUL":
            pair = operand(scaled)
            if pair is None or scaled.attributes.activation != "NONE":
                continue
            below, factor = rewriter.producer(pair[0], "RELU"), pair[1]
        if below is None or affine_of(rewriter, below.inputs[0], x) != (-1.0, 0.0):
            continue
        if x.shape is None or factor.ndim > len(x.shape) or x.shape != node.outputs[0].shape:
            continue
        return x, -factor if node.op == "ADD" else factor
    return None


def _maximum(rewriter: Rewriter, node: Node) -> tuple[Tensor, np.ndarray] | None:
    """(x, slope below zero) of MAXIMUM(x, a * x)."""
    a, b = node.inputs
    for x, scaled in ((a, b), (b, a)):
        if x is None or scaled is None or not is_float(x) or x.is_constant or x is scaled:
            continue
        read = affine_of(rewriter, scaled, x)
        if read is not None and read[1] == 0.0 and 0.0 <= read[0] <= 1.0:
            return x, np.array(read[0], x.dtype)
    return None

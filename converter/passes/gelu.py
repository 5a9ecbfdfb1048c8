"""MUL(MUL(x, 1/2), ADD(ERF(x / sqrt(2)), 1)) -> GELU(x); MUL(MUL(x, 1/2), ADD(TANH(sqrt(2/pi) (x + 0.044715 x^3)),
1)) -> GELU(x, approximate); factors and signs in any order, as 1 - erf(-x / sqrt(2)) too.

Formulas: Hendrycks & Gimpel 2016, Gaussian Error Linear Units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from converter.algebra import affine_of, affine_of_op, multiples, products
from converter.constants import is_float, near, scalar
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Tensor
from schema.ops.attributes import GeluAttributes

CUBIC = 0.044715
SLOPE = math.sqrt(2.0 / math.pi)


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("MUL", "DIV"):
        if node.attributes.activation != "NONE" or not is_float(node.outputs[0]):
            continue
        found = _match(rewriter, node)
        if found is not None and found[0].shape == node.outputs[0].shape:
            rewriter.rewrite(node, "GELU", [found[0]], GeluAttributes(approximate=found[1]))
            changes.append(f"{layer(node)}: recognised as GELU{' (tanh)' if found[1] else ''}")
    rewriter.commit()
    return changes


def _match(rewriter: Rewriter, node) -> tuple[Tensor, bool] | None:
    """(x, approximate) where the node's output is x / 2 * (1 + f(x)), f odd: the error function or the tanh of the
    cubic.
    """
    for factor, x, gate in products(rewriter, node):
        found = affine_of_op(rewriter, gate, "ERF", "TANH")
        if found is None or not near(factor * found[2], 0.5) or not near(abs(factor * found[1]), 0.5):
            continue
        inner, scale, _ = found
        sign = math.copysign(1.0, factor * scale)
        argument = inner.inputs[0]
        if inner.op == "ERF":
            read = affine_of(rewriter, argument, x)
            if read is not None and read[1] == 0.0 and near(sign * read[0], math.sqrt(0.5)):
                return x, False
        elif any(near(sign * a, SLOPE) and near(sign * c, SLOPE * CUBIC) for a, c in _cubics(rewriter, argument, x)):
            return x, True
    return None


def _cubics(rewriter: Rewriter, tensor: Tensor | None, x: Tensor) -> Iterator[tuple[float, float]]:
    """(a, c) with tensor = a * x + c * x^3: readings as a sum of both, and as x times a polynomial of its square."""
    for inner, factor in multiples(rewriter, tensor):
        node = rewriter.producer(inner, "ADD", "MUL")
        if node is None or node.attributes.activation != "NONE":
            continue
        p, q = node.inputs
        for left, right in ((p, q), (q, p)):
            if node.op == "ADD":
                linear = affine_of(rewriter, left, x)
                if linear is not None and linear[1] == 0.0:
                    yield from ((factor * linear[0], factor * cube) for cube in _cube(rewriter, right, x))
            elif left is x:
                found = affine_of_op(rewriter, right, "SQUARE")
                if found is not None and found[0].inputs[0] is x:
                    yield factor * found[2], factor * found[1]


def _cube(rewriter: Rewriter, tensor: Tensor | None, x: Tensor) -> Iterator[float]:
    """c with tensor = c * x^3."""
    for inner, factor in multiples(rewriter, tensor):
        node = rewriter.producer(inner, "POW", "MUL")
        if node is None:
            continue
        a, b = node.inputs
        if node.op == "POW":
            if a is x and scalar(b) == 3.0:
                yield factor
            continue
        for left, right in ((a, b), (b, a)):
            square = affine_of_op(rewriter, right, "SQUARE")
            if left is x and square is not None and square[0].inputs[0] is x and square[2] == 0.0:
                yield factor * square[1]

"""SELECT_V2(GREATER(x, 0), ELU(x), MUL(ELU(x), a)) -> ELU(x, a), as Keras spells an ELU whose scale is not 1."""

from __future__ import annotations

from converter.algebra import affine_of
from converter.constants import is_float, scalar
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import AlphaAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("SELECT_V2"):
        found = _match(rewriter, node)
        if found is not None:
            x, alpha = found
            rewriter.rewrite(node, "ELU", [x], AlphaAttributes(alpha))
            changes.append(f"{layer(node)}: recognised as ELU with alpha {alpha:g}")
    rewriter.commit()
    return changes


def _match(rewriter: Rewriter, node: Node) -> tuple[Tensor, float] | None:
    condition, above, below = node.inputs
    test = rewriter.producer(condition, "GREATER", "GREATER_EQUAL")
    if test is None or above is None or scalar(test.inputs[1]) != 0.0:
        return None
    x, unit = test.inputs[0], rewriter.producer(above, "ELU")
    if x is None or not is_float(x) or (above is not x and (unit is None or unit.inputs[0] is not x)):
        return None
    # Above zero both ELU(x) and x itself are right; below zero it must be a multiple of the same ELU.
    for reader in rewriter.consumers(x) if unit is None else [unit]:
        if reader.op == "ELU" and reader.attributes.alpha == 1.0:
            read = affine_of(rewriter, below, reader.outputs[0])
            if read is not None and read[1] == 0.0:
                return x, read[0]
    return None

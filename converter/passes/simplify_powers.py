"""POW(x, 2) -> SQUARE(x); POW(x, 0.5) -> SQRT(x); POW(x, -0.5) -> RSQRT(x); POW(x, -1) -> RECIPROCAL(x); MUL(x, x) ->
SQUARE(x); DIV(1, x) -> RECIPROCAL(x); RECIPROCAL(SQRT(x)) -> RSQRT(x); SQRT(RECIPROCAL(x)) -> RSQRT(x);
RECIPROCAL(RSQRT(x)) -> SQRT(x).
"""

from __future__ import annotations

from converter.constants import is_float, scalar
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor

POWERS = {2.0: "SQUARE", 0.5: "SQRT", -0.5: "RSQRT", -1.0: "RECIPROCAL"}
PAIRS = {("RECIPROCAL", "SQRT"): "RSQRT", ("SQRT", "RECIPROCAL"): "RSQRT", ("RECIPROCAL", "RSQRT"): "SQRT"}


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("POW", "MUL", "DIV", "RECIPROCAL", "SQRT"):
        found = _simpler(rewriter, node)
        if found is not None:
            op, x = found
            changes.append(f"{layer(node)}: {node.op} became {op}")
            rewriter.rewrite(node, op, [x], attributes=None)
    rewriter.commit()
    return changes


def _simpler(rewriter: Rewriter, node: Node) -> tuple[str, Tensor] | None:
    x = node.inputs[0]
    if x is None or not is_float(x) or getattr(node.attributes, "activation", "NONE") != "NONE":
        return None
    if len(node.inputs) == 1:
        inner = rewriter.producer(x, "SQRT", "RSQRT", "RECIPROCAL")
        op = None if inner is None else PAIRS.get((node.op, inner.op))
        return None if inner is None or op is None or inner.inputs[0] is None else (op, inner.inputs[0])
    y = node.inputs[1]
    if node.op == "MUL":
        return ("SQUARE", x) if x is y else None
    number = scalar(x if node.op == "DIV" else y)
    kept = y if node.op == "DIV" else x
    if number is None or kept is None or kept.shape != node.outputs[0].shape:
        return None
    op = POWERS.get(number) if node.op == "POW" else "RECIPROCAL" if number == 1.0 else None
    return None if op is None else (op, kept)

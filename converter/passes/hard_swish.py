"""MUL(x, MUL(RELU6(ADD(x, 3)), 1/6)) -> HARD_SWISH(x), with the factors in any order, 1/6 or a division by 6, and with
CLAMP(x/6 + 1/2, 0, 1) for the gate.

Formula: x * relu6(x + 3) / 6 (Howard et al. 2019, Searching for MobileNetV3).
"""

from __future__ import annotations

from converter.algebra import affine_of, affine_of_op, products
from converter.constants import is_float, near
from converter.ranges import bounds_of
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Tensor


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("MUL", "DIV"):
        if node.attributes.activation != "NONE" or not is_float(node.outputs[0]):
            continue
        x = next((x for factor, x, gate in products(rewriter, node) if _is_gate(rewriter, factor, x, gate)), None)
        if x is not None and x.shape == node.outputs[0].shape:
            rewriter.rewrite(node, "HARD_SWISH", [x], None)
            changes.append(f"{layer(node)}: recognised as HARD_SWISH")
    rewriter.commit()
    return changes


def _is_gate(rewriter: Rewriter, factor: float, x: Tensor, gate: Tensor) -> bool:
    """Whether factor * gate = relu6(x + 3) / 6, the gate being scale * clamp(k * x + b, low, high), k > 0."""
    found = affine_of_op(rewriter, gate, "RELU6", "CLAMP")
    if found is None or found[2] != 0.0:
        return False
    read = bounds_of(found[0])
    inside = None if read is None else affine_of(rewriter, read[0], x)
    if read is None or inside is None or inside[0] <= 0.0:
        return False
    k, offset = inside
    _, low, high = read
    return near(offset / k, 3.0) and low == 0.0 and near(high / k, 6.0) and near(factor * found[1] * k, 1 / 6)

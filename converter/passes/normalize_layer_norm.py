"""ADD(MUL(x, m), ADD(MUL(NEG(mean), m), beta)), m = MUL(r, gamma) -> ADD(MUL(MUL(SUB(x, mean), r), gamma), beta),
without gamma or beta too, and for SUB(beta, MUL(mean, m)): how Keras spells LayerNormalization and
GroupNormalization.

Four passes over the whole tensor instead of five, nothing cancels in rounding, and a factor and an addend per channel
come last, where the next layer takes them in.
"""

from __future__ import annotations

from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("ADD"):
        if node.attributes.activation == "NONE" and _rewrite(rewriter, node):
            changes.append(f"{layer(node)}: mean subtracted before scaling")
    rewriter.commit()
    return changes


def _rewrite(rewriter: Rewriter, node: Node) -> bool:
    a, b = node.inputs
    for scaled, rest in ((a, b), (b, a)):
        product = _product(rewriter, scaled)
        if product is None or rewriter.only_consumer(product.outputs[0]) is not node:
            continue
        for factor, x in (product.inputs, product.inputs[::-1]):
            found = _offset(rewriter, rest, factor)
            if found is not None and factor is not None and x is not None:
                _emit(rewriter, node, x, factor, *found)
                return True
    return False


def _product(rewriter: Rewriter, tensor: Tensor | None) -> Node | None:
    """The MUL of two computed tensors that makes this one."""
    node = rewriter.producer(tensor, "MUL")
    if node is None or node.attributes.activation != "NONE":
        return None
    return None if any(operand is None or operand.is_constant for operand in node.inputs) else node


def _times(rewriter: Rewriter, tensor: Tensor | None, factor: Tensor | None) -> Tensor | None:
    """y where the tensor is y * factor."""
    node = _product(rewriter, tensor)
    if node is None:
        return None
    a, b = node.inputs
    return b if a is factor else a if b is factor else None


def _offset(rewriter: Rewriter, rest: Tensor | None, factor: Tensor | None) -> tuple[Tensor, Tensor | None] | None:
    """(mean, beta) where rest = beta - mean * factor, beta a constant or None."""
    node = rewriter.producer(rest, "ADD", "SUB", "MUL", "NEG")
    if node is None or getattr(node.attributes, "activation", "NONE") != "NONE":
        return None
    if node.op == "NEG":
        mean = _times(rewriter, node.inputs[0], factor)
        return None if mean is None else (mean, None)
    if node.op == "SUB":
        beta, product = node.inputs
        mean = _times(rewriter, product, factor)
        return (mean, beta) if mean is not None and beta is not None and beta.is_constant else None
    product, beta = (rest, None) if node.op == "MUL" else node.inputs
    if beta is not None and not beta.is_constant:
        return None
    negative = rewriter.producer(_times(rewriter, product, factor), "NEG")
    mean = None if negative is None else negative.inputs[0]
    return None if mean is None else (mean, beta)


def _emit(rewriter: Rewriter, node: Node, x: Tensor, factor: Tensor, mean: Tensor, beta: Tensor | None) -> None:
    attributes = node.attributes
    steps: list[tuple[str, Tensor]] = []
    scaling = rewriter.producer(factor, "MUL")
    if scaling is not None and scaling.attributes.activation == "NONE":
        steps += [("MUL", operand) for operand in scaling.inputs if operand is not None and not operand.is_constant]
        steps += [("MUL", operand) for operand in scaling.inputs if operand is not None and operand.is_constant]
    else:
        steps.append(("MUL", factor))
    if beta is not None:
        steps.append(("ADD", beta))
    tensor = rewriter.add("SUB", [x, mean], attributes, before=node)
    for op, operand in steps[:-1]:
        tensor = rewriter.add(op, [tensor, operand], attributes, before=node)
    rewriter.rewrite(node, steps[-1][0], [tensor, steps[-1][1]])

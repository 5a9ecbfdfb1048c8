"""Which node of a quantized graph stands for which of the float graph it was made of."""

from __future__ import annotations

from collections.abc import Iterator

from schema.graph import Graph, Node

CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")


def matched(real: Graph, quantized: Graph) -> Iterator[tuple[Node, Node]]:
    """(float node, its quantized form), in order. What is left over are conversions between the two, and those of the
    float graph that told the range of a tensor, which is rounded where it is made then.
    """
    candidates = iter(quantized.nodes)
    made = {tensor for node in quantized.nodes for tensor in node.outputs}
    for node in real.nodes:
        if node.op in CONVERSIONS and node.outputs[0] not in made:
            continue
        yield node, next(candidate for candidate in candidates if _stands_for(candidate, node))


def _stands_for(candidate: Node, node: Node) -> bool:
    if (candidate.op, candidate.name) != (node.op, node.name):
        return False
    # Conversions that the float graph has are kept as they are; those that were put in compute other tensors.
    return node.op not in CONVERSIONS or candidate.outputs[0] is node.outputs[0]

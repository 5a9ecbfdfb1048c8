"""Which node of a quantized graph stands for which of the float graph it was made of."""

from __future__ import annotations

from collections.abc import Iterator

from schema.graph import Graph, Node


def matched(real: Graph, quantized: Graph) -> Iterator[tuple[Node, Node]]:
    """(float node, its quantized form), in order. What is left over are conversions between the two."""
    candidates = iter(quantized.nodes)
    for node in real.nodes:
        for candidate in candidates:
            if (candidate.op, candidate.name) == (node.op, node.name):
                yield node, candidate
                break
        else:
            raise AssertionError(f"{node} is not in the quantized graph")

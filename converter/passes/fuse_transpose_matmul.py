"""BATCH_MATMUL(a, TRANSPOSE(b)) -> BATCH_MATMUL(a, b, adj_y) and so for the first operand; TRANSPOSE(BATCH_MATMUL(a,
b)) -> BATCH_MATMUL(b, a) with both turned. For the last two axes; a TRANSPOSE that also moves others keeps them and
the last one in place.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from converter.constants import constant, value_of
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node
from schema.ops.attributes import BatchMatMulAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("BATCH_MATMUL"):
        for index, name in ((0, "adj_x"), (1, "adj_y")):
            if _take_in(rewriter, node, index, name):
                changes.append(f"{layer(node)}: TRANSPOSE of operand {index} became {name}")
        if _turn(rewriter, node):
            changes.append(f"{layer(node)}: TRANSPOSE behind BATCH_MATMUL taken in")
    rewriter.commit()
    return changes


def _swapped(node: Node | None) -> list[int] | None:
    """The permutation with its last two entries exchanged, which remains once the product turns its operand itself."""
    perm = None if node is None else value_of(node.inputs[1])
    if perm is None or perm.size < 2:
        return None
    axes = [int(axis) % perm.size for axis in perm]
    return [*axes[:-2], axes[-1], axes[-2]]


def _take_in(rewriter: Rewriter, node: Node, index: int, name: str) -> bool:
    transpose = rewriter.producer(node.inputs[index], "TRANSPOSE")
    rest = _swapped(transpose)
    if transpose is None or rest is None or rest[-1] != len(rest) - 1:
        return False
    operand = transpose.inputs[0]
    if operand is None:
        return False
    if rest != sorted(rest):
        order = constant(f"{transpose.name}/perm", np.array(rest, np.int32))
        quantization = transpose.outputs[0].quantization
        operand = rewriter.add(
            "TRANSPOSE", [operand, order], before=node, name=transpose.name, quantization=quantization
        )
    inputs = list(node.inputs)
    inputs[index] = operand
    turned = dataclasses.replace(node.attributes, **{name: not getattr(node.attributes, name)})
    rewriter.rewrite(node, inputs=inputs, attributes=turned)
    return True


def _turn(rewriter: Rewriter, node: Node) -> bool:
    follower = rewriter.only_consumer(node.outputs[0])
    rest = _swapped(follower) if follower is not None and follower.op == "TRANSPOSE" else None
    if follower is None or rest is None or rest != sorted(rest):
        return False
    rewriter.absorb(node, follower)
    a = node.attributes
    turned = BatchMatMulAttributes(adj_x=not a.adj_y, adj_y=not a.adj_x)
    rewriter.rewrite(node, inputs=node.inputs[::-1], attributes=turned)
    return True

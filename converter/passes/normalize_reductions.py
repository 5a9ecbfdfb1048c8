"""MEAN(x, [-2, -3]) -> MEAN(x, [1, 2]) for every reduction; RESHAPE(MEAN(x)) -> MEAN(x, keep_dims) where that is all
it does; MUL(SUM(x), 1/n) -> MEAN(x) where n elements are summed.

So a global average pooling over H and W is one node whatever it is spelled as, and stays of rank 4 where that is
wanted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from converter.constants import constant, near, scalar, value_of
from converter.rewriter import Rewriter, layer
from converter.symbolic_shapes import ONE, SymbolicShapes, product
from schema.graph import Graph, Node

REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes(*REDUCTIONS):
        x, axes = node.inputs[0], value_of(node.inputs[1])
        if x is None or axes is None or x.shape is None:
            continue
        rank = len(x.shape)
        reduced = sorted({int(axis) % rank for axis in axes.flat})
        if axes.ndim != 1 or axes.tolist() != reduced or axes.dtype != np.int32:
            rewriter.rewrite(node, inputs=[x, constant(f"{node.name}/axes", np.array(reduced, np.int32))])
            changes.append(f"{layer(node)}: {node.op} over axes {reduced}")
        if _keep_dims(rewriter, shapes, node, reduced):
            changes.append(f"{layer(node)}: {node.op} keeps its axes")
        if node.op == "SUM" and _mean(rewriter, shapes, node, reduced):
            changes.append(f"{layer(node)}: SUM and factor became MEAN")
    rewriter.commit()
    return changes


def _mean(rewriter: Rewriter, shapes: SymbolicShapes, node: Node, reduced: list[int]) -> bool:
    follower = rewriter.only_consumer(node.outputs[0])
    if follower is None or follower.op != "MUL" or follower.attributes.activation != "NONE":
        return False
    factor, dims = scalar(follower.inputs[1]), shapes.dims(node.inputs[0])
    count = None if dims is None else product(dims[axis] for axis in reduced).value
    if (
        factor is None
        or not count
        or not near(factor * count, 1.0)
        or not shapes.same(*follower.outputs, *node.outputs)
    ):
        return False
    rewriter.absorb(node, follower)
    rewriter.rewrite(node, "MEAN")
    return True


def _keep_dims(rewriter: Rewriter, shapes: SymbolicShapes, node: Node, reduced: list[int]) -> bool:
    follower = rewriter.only_consumer(node.outputs[0])
    if node.attributes.keep_dims or follower is None or follower.op not in ("RESHAPE", "EXPAND_DIMS"):
        return False
    if follower.inputs[0] is not node.outputs[0]:
        return False
    dims = shapes.dims(node.inputs[0])
    kept = tuple(ONE if axis in reduced else size for axis, size in enumerate(dims or ()))
    if shapes.dims(follower.outputs[0]) != kept:
        return False
    rewriter.absorb(node, follower)
    rewriter.rewrite(node, attributes=dataclasses.replace(node.attributes, keep_dims=True))
    return True

"""MEAN(x, [-2, -3]) -> MEAN(x, [1, 2]) for every reduction; RESHAPE(MEAN(x)) -> MEAN(x, keep_dims) where that is all
it does; MUL(SUM(x), 1/n) -> MEAN(x) where n elements are summed.

So a global average pooling over H and W is one node whatever it is spelled as, and stays of rank 4 where that is
wanted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from converter.constants import constant, near, scalar, value_of
from converter.elementwise import BINARY, POINTWISE
from converter.rewriter import Rewriter, layer
from converter.sizes import ONE, product, values
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node

RESHAPES = ("RESHAPE", "EXPAND_DIMS")
NEAR = 16
"""How many readers of what is reduced, and of what is made of it, are looked at."""
REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes(*REDUCTIONS):
        x, axes = node.inputs[0], value_of(node.inputs[1])
        if x is None or axes is None or x.shape is None:
            continue
        rank = len(x.shape)
        reduced = sorted({int(axis) % rank for axis in axes.flat})
        if node.attributes.keep_dims:  # over axes of 1 there is nothing to reduce
            reduced = [axis for axis in reduced if x.shape[axis] != 1] or reduced
        if axes.ndim != 1 or axes.tolist() != reduced or axes.dtype != np.int32:
            rewriter.rewrite(node, inputs=[x, constant(f"{node.name}/axes", np.array(reduced, np.int32))])
            changes.append(f"{layer(node)}: {node.op} over axes {reduced}")
        if node.op == "SUM" and _mean(rewriter, shapes, node, reduced):
            changes.append(f"{layer(node)}: SUM and factor became MEAN")
        op = node.op
        if _keep_dims(rewriter, shapes, node, reduced):
            changes.append(f"{layer(node)}: {op} keeps its axes")
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


def _bringing_back(rewriter: Rewriter, shapes: SymbolicShapes, node: Node, reduced: list[int]) -> Node | None:
    """The reshape that gives what is reduced its axes again, at once or behind what works on each element alone."""
    found, waiting, kept = 0, [node.outputs[0]], None
    while waiting and found < NEAR:
        tensor = waiting.pop()
        for reader in rewriter.consumers(tensor):
            found += 1
            if reader.op in RESHAPES and reader.inputs[0] is tensor:
                if kept is None:
                    dims = shapes.dims(node.inputs[0]) or ()
                    kept = tuple(ONE if axis in reduced else size for axis, size in enumerate(dims))
                if shapes.dims(reader.outputs[0]) == kept:
                    return reader
            elif (reader.op in POINTWISE or reader.op in BINARY) and shapes.same(tensor, reader.outputs[0]):
                waiting.append(reader.outputs[0])
    return None


def _keep_dims(rewriter: Rewriter, shapes: SymbolicShapes, node: Node, reduced: list[int]) -> bool:
    """Let the reduction keep its axes where a reader brings them back; other readers get a RESHAPE without them."""
    if node.attributes.keep_dims:
        return False
    output, attributes = node.outputs[0], dataclasses.replace(node.attributes, keep_dims=True)
    reader = _bringing_back(rewriter, shapes, node, reduced)
    if reader is None:
        return False
    if rewriter.only_consumer(output) is reader:
        rewriter.absorb(node, reader)
        rewriter.rewrite(node, attributes=attributes)
        return True
    sizes = values(shapes.dims(output) or ())
    if sizes.count(None) > 1:
        return False
    target = np.array([-1 if size is None else size for size in sizes], np.int32)
    inner = rewriter.add(node.op, node.inputs, attributes, before=node, quantization=output.quantization)
    rewriter.rewrite(node, "RESHAPE", [inner, constant(f"{node.name}/shape", target)], None)
    return True

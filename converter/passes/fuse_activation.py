"""RELU(CONV(x)) -> CONV(x, activation=RELU); RELU, RELU6, RELU_N1_TO_1 and CLAMP into convolutions, dense layers, 2-D
poolings and ADD, SUB, MUL, DIV that nobody else reads. Two clamps in a row become the one that does both.
"""

from __future__ import annotations

import dataclasses

from converter.constants import is_float
from converter.linear import LINEAR
from converter.ranges import bounds_of, clip, named
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node
from schema.ops.attributes import activation_range

FUSING = (*LINEAR, "AVERAGE_POOL_2D", "MAX_POOL_2D", "ADD", "SUB", "MUL", "DIV")


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("RELU", "RELU6", "RELU_N1_TO_1", "CLAMP"):
        read = bounds_of(node)
        maker = None if read is None else rewriter.producer(read[0], *FUSING)
        if read is None or maker is None or rewriter.only_consumer(read[0]) is not node or not is_float(read[0]):
            continue
        _fuse(rewriter, maker, node, *read[1:])
        changes.append(f"{layer(node)} ({node.op}) fused into {layer(maker)}")
    rewriter.commit()
    return changes


def _fuse(rewriter: Rewriter, maker: Node, clamp: Node, low: float, high: float) -> None:
    before = activation_range(maker.attributes)
    low, high = clip(before[0], low, high), clip(before[1], low, high)
    activation = named(low, high)
    bounds = (low, high) if activation == "CLAMP" else (0.0, 0.0)
    attributes = dataclasses.replace(maker.attributes, activation=activation, clamp_min=bounds[0], clamp_max=bounds[1])
    rewriter.absorb(maker, clamp)
    rewriter.rewrite(maker, attributes=attributes)

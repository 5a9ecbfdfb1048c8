"""ADD(MUL(x, s), t) -> DEPTHWISE_CONV_2D(x, s, t) with a 1x1 kernel, for rank 4 and one number for each channel.

A BatchNorm that found no convolution to fold into (behind a Concatenate, as in DenseNet) is one pass over its input
instead of two, and in int8 its factors and addends have the precision of weights and biases.
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, is_float, operand, per_channel
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node
from schema.ops.attributes import Conv2DAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("ADD"):
        if _rewrite(rewriter, node):
            changes.append(f"{layer(node)}: MUL and ADD per channel became one DEPTHWISE_CONV_2D")
    rewriter.commit()
    return changes


def _rewrite(rewriter: Rewriter, node: Node) -> bool:
    outer = operand(node)
    factor = None if outer is None else rewriter.producer(outer[0], "MUL")
    inner = None if factor is None else operand(factor)
    if outer is None or factor is None or inner is None or rewriter.only_consumer(outer[0]) is not node:
        return False
    x, shape = inner[0], node.outputs[0].shape
    if shape is None or len(shape) != 4 or shape[3] is None or x.shape != shape or not is_float(x):
        return False
    scale, offset = (per_channel(value, 4, shape[3]) for value in (inner[1], outer[1]))
    if (
        scale is None
        or offset is None
        or max(inner[1].size, outer[1].size) == 1
        or factor.attributes.activation != "NONE"
    ):
        return False
    attributes = Conv2DAttributes(**{f: getattr(node.attributes, f) for f in _ACTIVATION})
    weights = constant(f"{factor.name}/scale", np.array(scale, x.dtype).reshape(1, 1, 1, -1))
    rewriter.rewrite(
        node, "DEPTHWISE_CONV_2D", [x, weights, constant(f"{node.name}/offset", np.array(offset, x.dtype))], attributes
    )
    return True


_ACTIVATION = ("activation", "clamp_min", "clamp_max")

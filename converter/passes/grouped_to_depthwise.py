"""CONV_2D(x, w) -> DEPTHWISE_CONV_2D(x, w) where there are as many groups as input channels, as ConvNeXt spells it."""

from __future__ import annotations

import numpy as np

from converter.linear import bias_of, foldable
from converter.rewriter import Rewriter, layer
from schema.graph import Constant, Graph, Tensor


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("CONV_2D"):
        x, weights = node.inputs[0], node.inputs[1]
        if x is None or weights is None or x.shape is None or weights.shape is None or not foldable(node):
            continue
        channels = x.shape[3]
        # With one channel in all it is both; then the general convolution is the better known one.
        if channels in (None, 1) or weights.shape[3] != 1 or node.inputs[1] is None:
            continue
        rewriter.rewrite(node, "DEPTHWISE_CONV_2D", [x, _depthwise(weights), bias_of(node)])
        changes.append(f"{layer(node)}: convolution in {channels} groups became depthwise")
    rewriter.commit()
    return changes


def _depthwise(weights: Tensor) -> Tensor:
    """OHW1 weights as 1HWO."""
    stored = weights.constant
    assert stored is not None
    values = np.ascontiguousarray(np.asarray(stored.values).transpose(3, 1, 2, 0))
    axis = {0: 3, 1: 1, 2: 2, 3: 0}[stored.axis]
    constant = Constant(values, stored.channel_scale, axis)
    return Tensor(weights.name, weights.dtype, values.shape, weights.quantization, constant)

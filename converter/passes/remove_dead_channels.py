"""CONV(RELU(CONV(x, w1)), w2) -> the same without the channels between the two that are constants whatever x is, or
that w2 has zeros for; through any ops that keep channels apart.

A channel is a constant where its weights are zero: its bias after the activation, whose share in the sums goes into the
bias of the reader, if no padding cuts it. Channels that are added to others go with these or not at all. What graph
outputs and ops that are not understood read stays, and so does what is quantized. One channel of each layer stays.
"""

from __future__ import annotations

import numpy as np

from converter.constants import is_float
from converter.dead_channels import linear_ops, moving_ops
from converter.dead_channels.flow import Flow
from converter.dead_channels.removal import remove
from converter.linear import LINEAR
from converter.rewriter import Rewriter
from schema.graph import Graph, Node, Tensor


def run(graph: Graph) -> list[str]:
    if not any(_has_dead_slices(node) for node in graph.nodes if node.op in LINEAR):
        return []
    flow = Flow(graph)
    for tensor in graph.inputs:
        _fixed(flow, tensor)
    for node in graph.nodes:
        if not _follow(flow, node):
            flow.opaque(node)
            for tensor in node.outputs:
                _fixed(flow, tensor)
    for tensor in (*graph.outputs, *graph.state):
        channels = flow.of(tensor)
        if channels is not None:
            flow.need(channels.ids)
        elif tensor.is_constant:
            flow.slices.setdefault(tensor, {})[-1] = np.zeros(0, np.int64)
    keep = flow.kept()
    if keep.all():
        return []
    rewriter = Rewriter(graph)
    lines = remove(graph, rewriter, flow, keep)
    rewriter.commit()
    return lines


def _follow(flow: Flow, node: Node) -> bool:
    if node.op in LINEAR:
        return linear_ops.follow(flow, node)
    rule = moving_ops.OPS.get(node.op)
    return rule is not None and rule(flow, node)


def _fixed(flow: Flow, tensor: Tensor) -> None:
    """Channels along the last axis that stay: of inputs, and of what is not understood."""
    size = tensor.shape[-1] if tensor.shape and len(tensor.shape) > 1 else None
    if size is not None and is_float(tensor):
        ids = flow.new(size)
        flow.need(ids)
        flow.set(tensor, len(tensor.shape) - 1, ids)


def _has_dead_slices(node: Node) -> bool:
    """Whether the weights have an output or an input of zeros: without one, there is nothing to find."""
    operands = LINEAR[node.op]
    weights = node.inputs[operands.weights]
    if weights is None or not is_float(weights) or weights.constant is None:
        return False
    values = np.asarray(weights.constant.values)
    axes = [axis for axis in (operands.out_axis, operands.in_axis) if axis is not None]
    return any(
        not values.any(axis=tuple(other for other in range(values.ndim) if other != axis)).all() for axis in axes
    )

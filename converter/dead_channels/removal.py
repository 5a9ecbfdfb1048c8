"""Takes channels out of a graph: smaller constants, and what removed constants add in the biases of their readers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from converter.constants import constant
from converter.dead_channels.flow import Flow
from converter.linear import bias_of, bias_value, set_operands
from converter.rewriter import Rewriter
from schema.graph import Constant, Graph, Node, Tensor


def remove(graph: Graph, rewriter: Rewriter, flow: Flow, keep: np.ndarray) -> list[str]:
    """Rewrites the nodes; returns a line for each layer that lost channels."""
    smaller = {
        tensor: _sliced(tensor, {axis: keep[ids] for axis, ids in axes.items() if axis >= 0})
        for tensor, axes in flow.slices.items()
        if any(not keep[ids].all() for ids in axes.values())
    }
    for reader in flow.readers:
        added = reader.added(~keep[reader.ids])
        if added.any():
            set_operands(rewriter, reader.node, bias=bias_value(reader.node) + added)
            _tie_bias(flow, reader.node, keep, smaller)
    lines = _account(graph, flow, keep)
    for node in list(rewriter.nodes()):
        inputs = [smaller.get(tensor, tensor) if tensor is not None else None for tensor in node.inputs]
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            rewriter.rewrite(node, inputs=inputs)
    for node, index, axis, ids in flow.shapes:
        if not keep[ids].all():
            _reshape(rewriter, node, index, axis, int(np.count_nonzero(keep[ids])))
    return lines


def _sliced(tensor: Tensor, keep: dict[int, np.ndarray]) -> Tensor:
    """A constant with fewer slices; its stored values and factors stay what they are."""
    stored = tensor.constant
    values, scale = np.asarray(stored.values), stored.channel_scale
    for axis, which in keep.items():
        values = np.compress(which, values, axis)
        if scale is not None and axis == stored.axis:
            scale = np.compress(which, np.asarray(scale))
    return Tensor(
        tensor.name,
        tensor.dtype,
        values.shape,
        tensor.quantization,
        Constant(np.ascontiguousarray(values), scale, stored.axis),
    )


def _tie_bias(flow: Flow, node: Node, keep: np.ndarray, smaller: dict[Tensor, Tensor]) -> None:
    """The new bias is as long as the old results: it loses the same channels."""
    bias, results = bias_of(node), flow.channels[node.outputs[0]]
    if bias is not None and not keep[results.ids].all():
        smaller[bias] = _sliced(bias, {0: keep[results.ids]})


def _reshape(rewriter: Rewriter, node: Node, index: int, axis: int, count: int) -> None:
    """Puts the number of channels into the shape that a node is given."""
    shape, inputs = node.inputs[index], list(node.inputs)
    pack = rewriter.producer(shape, "PACK")
    if pack is not None:
        sizes = list(pack.inputs)
        sizes[axis] = constant(sizes[axis].name, np.array(count, sizes[axis].dtype))
        inputs[index] = rewriter.add("PACK", sizes, pack.attributes, before=node, name=pack.name)
        rewriter.rewrite(node, inputs=inputs)
        return
    target = np.array(shape.value).reshape(-1).tolist()
    if node.op == "RESHAPE":  # its -1 may stand for the channels
        target = [-1 if size is None else size for size in node.outputs[0].shape]
    target[axis] = count
    inputs[index] = constant(shape.name, np.array(target, shape.dtype))
    rewriter.rewrite(node, inputs=inputs)


def _account(graph: Graph, flow: Flow, keep: np.ndarray) -> list[str]:
    """`conv1: 12 of 64 channels removed`, by the layers whose weights compute them."""
    gone: Counter[str] = Counter()
    total: Counter[str] = Counter()
    seen: set[int] = set()
    for reader in flow.readers:
        ids = flow.channels[reader.node.outputs[0]].ids
        name = reader.node.name or reader.node.op
        if id(ids) not in seen:
            seen.add(id(ids))
            total[name] += len(ids)
            gone[name] += int(np.count_nonzero(~keep[ids]))
    return [f"{name}: {gone[name]} of {total[name]} channels removed" for name in total if gone[name]]

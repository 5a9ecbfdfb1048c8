"""Convolutions, depthwise and transposed ones, and FULLY_CONNECTED."""

from __future__ import annotations

import numpy as np

from converter.constants import is_float
from converter.dead_channels.flow import Affine, Channels, Flow, Reader
from converter.linear import LINEAR, bias_of, bias_value, foldable
from schema.graph import Node, Tensor
from schema.ops.attributes import activation_range


def follow(flow: Flow, node: Node) -> bool:
    """Follows the node, False where it is not of a kind that is understood."""
    operands = LINEAR[node.op]
    x, weights, y = node.inputs[operands.x], node.inputs[operands.weights], node.outputs[0]
    channels = flow.of(x)
    if channels is None or not foldable(node) or not is_float(y) or weights is None or weights.value is None:
        return False
    rank = len(x.shape)
    if node.op == "FULLY_CONNECTED" and not _keeps_axes(node, x):
        return False
    if channels.axis != rank - 1:
        if x.shape[-1] is None:
            return False
        channels = _along_the_last_axis(flow, x, channels)
    if node.op == "DEPTHWISE_CONV_2D":
        ids, values = _depthwise(flow, node, channels, weights)
    elif len(channels.ids) != weights.shape[operands.in_axis]:
        return False  # groups
    else:
        if operands.transposed and not _says_channels(flow, node.inputs[0]):
            return False
        ids, values = _full(flow, node, channels, weights)
    if bias_of(node) is not None:
        flow.tie(bias_of(node), 0, ids)
    if operands.transposed:
        flow.shapes.append((node, 0, rank - 1, ids))
    low, high = activation_range(node.attributes)
    flow.set(y, len(y.shape) - 1, ids, np.clip(values, low, high))
    return True


def _along_the_last_axis(flow: Flow, x: Tensor, followed: Channels) -> Channels:
    """Where another axis is followed, as behind a transposition: it stays, and so does what the layer sums over."""
    flow.need(followed.ids)
    ids = flow.new(x.shape[-1])
    flow.need(ids)
    return Channels(len(x.shape) - 1, ids, np.full(len(ids), np.nan))


def _says_channels(flow: Flow, shape: Tensor) -> bool:
    """Whether the number of channels in a shape is known: it is a constant, or put together from sizes."""
    maker = flow.maker(shape)
    return shape.is_constant or (maker is not None and maker.op == "PACK" and maker.inputs[-1].is_constant)


def _keeps_axes(node: Node, x: Tensor) -> bool:
    return bool(node.attributes.keep_num_dims) or len(x.shape) == 2


def _uniform(node: Node) -> bool:
    """Whether padding takes part in no result."""
    if node.op == "FULLY_CONNECTED":
        return True
    return not LINEAR[node.op].transposed and node.attributes.padding == "VALID"


def _full(flow: Flow, node: Node, x: Channels, weights: Tensor) -> tuple[np.ndarray, np.ndarray]:
    operands = LINEAR[node.op]
    kernel = np.moveaxis(weights.value, (operands.in_axis, operands.out_axis), (-2, -1))
    affine = Affine(kernel.reshape(-1, *kernel.shape[-2:]), x.values, _uniform(node))
    flow.tie(weights, operands.in_axis, x.ids)
    flow.need(x.ids[affine.live()])
    flow.readers.append(Reader(node, x.ids, affine.added))
    return flow.results_of(weights, operands.out_axis), affine.results(bias_value(node))


def _depthwise(flow: Flow, node: Node, x: Channels, weights: Tensor) -> tuple[np.ndarray, np.ndarray]:
    multiplier = weights.shape[-1] // len(x.ids)
    ids, values = np.repeat(x.ids, multiplier), np.repeat(x.values, multiplier)
    kernel = weights.value.reshape(-1, len(ids)).astype(np.float64)
    usable = (values == 0) | (np.isfinite(values) & _uniform(node)) | ~kernel.any(axis=0)
    flow.tie(weights, len(weights.shape) - 1, ids)
    sums = np.where(usable, np.nan_to_num(values), 0.0) * kernel.sum(axis=0) + bias_value(node)
    return ids, np.where(usable, sums, np.nan)

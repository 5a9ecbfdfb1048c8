"""Weights stored as int8, or in 1 to 8 bits, with a scale for each output channel, and computed with as float32.

Activations stay float32, so that only the weights' rounding is lost, and no calibration data is needed; with some,
weights are rounded to suit it. It is what TFLite calls dynamic range, but for its rounding of activations as they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from converter.quantize import matrices
from converter.quantize.grid import to_grid
from converter.quantize.moments import Moments
from converter.quantize.report import Kept
from converter.quantize.rounding import mean_error
from converter.quantize.weights import Channels, clustered, per_channel
from schema.graph import Constant, Graph, Node, Tensor, all_nodes

SMALLEST_SIZE = 256  # elements: below that less than a kilobyte is saved
FLOAT32 = np.dtype(np.float32)

AXES: dict[str, Mapping[int, int]] = {
    "CONV_2D": {1: 0},
    "DEPTHWISE_CONV_2D": {1: 3},
    "TRANSPOSE_CONV": {1: 0},
    "CONV_3D": {1: 4},
    "CONV_3D_TRANSPOSE": {1: 3},
    "FULLY_CONNECTED": {1: 0},
    "GATHER": {0: 0},  # a table of embeddings
    "UNIDIRECTIONAL_SEQUENCE_LSTM": dict.fromkeys((*range(1, 9), 16), 0),
    "UNIDIRECTIONAL_SEQUENCE_RNN": {1: 0, 2: 0},
    "SVDF": {1: 0, 2: 0},
}
"""Operands that are weights, and the axis of their output channels."""


def weights_of(node: Node) -> dict[Tensor, int]:
    """A node's weights that are constant float32, and the axis of their output channels."""
    axes = dict(AXES.get(node.op, {}))
    if node.op == "BATCH_MATMUL":
        rank = len((node.inputs[1].shape if node.inputs[1] is not None else None) or ())
        axes = {1: rank - 2 if node.attributes.adj_y else rank - 1}
    inputs = ((node.inputs[i], axis) for i, axis in axes.items() if i < len(node.inputs))
    return {t: axis for t, axis in inputs if t is not None and t.is_constant and t.dtype == FLOAT32}


def calibrated_nodes(graph: Graph, kept_nodes: Mapping[Node, str]) -> list[Node]:
    """Nodes whose weights can be rounded to suit their inputs: each with a bias of its own, which takes on what is left
    of the errors' mean.
    """
    readers: dict[Tensor, list[Node]] = {}
    for node in all_nodes(graph):
        for tensor in node.inputs:
            if tensor is not None and tensor.is_constant:
                readers.setdefault(tensor, []).append(node)
    return [
        node
        for node in graph.nodes
        if node.op in matrices.OPS and node not in kept_nodes and len(node.inputs) > 2 and weights_of(node)
        if node.inputs[2] is not None and all(readers.get(tensor) == [node] for tensor in node.inputs[1:3] if tensor)
    ]


def store_int8(
    graph: Graph, kept_nodes: Mapping[Node, str], moments: Mapping[Tensor, Moments]
) -> tuple[list[Tensor], list[Kept]]:
    """Store weights as int8. Returns (changed, kept).

    kept_nodes: whose weights stay float32, and why. moments: of what weights meet, of those that are rounded by them.
    """

    def channels(tensor: Tensor, axis: int) -> Channels:
        return per_channel(tensor.value, axis, moments.get(tensor))

    return _store_weights(graph, kept_nodes, moments, _obstacle, channels)


def store_bits(
    graph: Graph, kept_nodes: Mapping[Node, str], bits: Mapping[Node, int], moments: Mapping[Tensor, Moments]
) -> tuple[list[Tensor], list[Kept]]:
    """Store weights in few bits. Returns (changed, kept), as `store_int8` does.

    bits: of the nodes whose weights are stored so; of weights that several share, the most.
    """
    most: dict[Tensor, int] = {}
    for node, number in bits.items():
        for tensor in weights_of(node):
            most[tensor] = max(number, most.get(tensor, 0))

    def obstacle(tensor: Tensor, axis: int) -> str | None:
        if tensor not in most:
            return "no bits are given for its layer"
        constant = tensor.constant
        assert constant is not None
        if not _is_float32(tensor):
            return f"stored as {np.asarray(constant.values).dtype} already"
        size, channels = constant.values.size, constant.values.shape[axis]
        if most[tensor] * size + 32 * channels >= 32 * size:
            return f"{size} weights and a step for each of {channels} channels would take more bytes"
        return _no_grid(tensor, axis)

    def channels(tensor: Tensor, axis: int) -> Channels:
        return to_grid(tensor.value, axis, most[tensor], moments.get(tensor))

    changed, kept = _store_weights(graph, kept_nodes, moments, obstacle, channels)
    others = (tensor for node in bits for tensor in node.inputs if tensor is not None and tensor not in most)
    for tensor in dict.fromkeys(others):
        if tensor.is_constant and tensor.dtype == FLOAT32 and tensor.value.size > 1:
            kept.append(Kept(tensor, f"{tensor.value.size} numbers that are no kernel: see vector_bits"))
    return changed, kept


def _store_weights(
    graph: Graph,
    kept_nodes: Mapping[Node, str],
    moments: Mapping[Tensor, Moments],
    obstacle: Callable[[Tensor, int], str | None],
    channels: Callable[[Tensor, int], Channels],
) -> tuple[list[Tensor], list[Kept]]:
    """Store as `channels` gives them those weights that no obstacle keeps. Returns (changed, kept)."""
    axes: dict[Tensor, int] = {}
    biases: dict[Tensor, Tensor | None] = {}
    for node in all_nodes(graph):
        for tensor, axis in weights_of(node).items():
            axes.setdefault(tensor, axis)
            biases[tensor] = node.inputs[2] if len(node.inputs) > 2 else None
    protected = {tensor: reason for node, reason in kept_nodes.items() for tensor in node.inputs}
    changed: list[Tensor] = []
    kept: list[Kept] = []
    for tensor, axis in axes.items():
        reason = protected.get(tensor) or obstacle(tensor, axis)
        if reason is not None:
            kept.append(Kept(tensor, reason))
        elif _is_float32(tensor):
            _store(tensor, axis, biases[tensor], channels(tensor, axis), moments.get(tensor))
            changed.append(tensor)
    return changed, kept


def _store(weights: Tensor, axis: int, bias: Tensor | None, channels: Channels, moments: Moments | None) -> None:
    real = weights.value
    assert real is not None
    weights.set_constant(Constant(channels.base, channels.scale.astype(np.float32), axis))
    if moments is not None:
        assert bias is not None and bias.value is not None
        corrected = bias.value + mean_error(real, weights.value, moments)
        bias.set_constant(Constant(corrected.astype(np.float32)))


def _is_float32(tensor: Tensor) -> bool:
    """Whether the weights are stored as such, and not in fewer bits already."""
    assert tensor.constant is not None
    return np.asarray(tensor.constant.values).dtype == FLOAT32


def _obstacle(tensor: Tensor, axis: int) -> str | None:
    constant = tensor.constant
    assert constant is not None
    if not _is_float32(tensor):
        return None
    if constant.values.size < SMALLEST_SIZE:
        return f"{constant.values.size} weights are too few to save much"
    return _no_grid(tensor, axis)


def _no_grid(tensor: Tensor, axis: int) -> str | None:
    assert tensor.constant is not None
    if not np.isfinite(tensor.value).all():
        return "its weights are not finite"
    if clustered(tensor.constant, axis) is not None:
        return "its weights have few distinct values, which are smaller as they are"
    return None

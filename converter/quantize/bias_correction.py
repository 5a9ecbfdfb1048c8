"""Bias correction: what quantization shifts the mean of each channel by goes back into the bias.

Rounded weights shift means, which `rounding` makes up for by itself. What remains is inherited: activations that were
clipped or rounded in earlier layers have other means than in the float model. Layer by layer, as they run, the mean of
what a layer computes before its activation is measured in both, and their difference added to the integer bias: the
empirical bias correction of M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction",
ICCV 2019. What the layers after it get is then measured with the corrected one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from converter.linear import LINEAR, bias_of, channels_of
from converter.quantize.calibration import Batch
from converter.quantize.execution import Execution
from converter.quantize.matching import matched
from converter.quantize.measure import as_inputs
from converter.quantize.weights import BIASES
from schema.fixedpoint import dequantize, round_half_away
from schema.graph import Graph, Node, Tensor
from schema.quantization import Quantization

FLOAT32 = np.dtype(np.float32)


def correctable(real: Graph, quantized: Graph) -> dict[Node, Node]:
    """The linear nodes that became integer ones, by their float form, in the order in which they run."""
    return {a: b for a, b in matched(real, quantized) if b.op in LINEAR and b.outputs[0].quantization is not None}


def float_means(real: Graph, nodes: Sequence[Node], batches: Sequence[Batch]) -> dict[Node, np.ndarray]:
    """Of each linear node, the mean of each output channel before its activation: float64 (channels,)."""
    if not nodes:
        return {}
    plain = [_without_activation(node, node.inputs) for node in nodes]
    graph = dataclasses.replace(real, nodes=[*real.nodes, *plain])
    execution = Execution(graph, [node.outputs[0] for node in plain])
    means = [_Mean(channels_of(node)) for node in plain]
    for batch in batches:
        for mean, array in zip(means, execution(batch), strict=True):
            mean.add(array)
    return {node: mean.value() for node, mean in zip(nodes, means, strict=True)}


def correct(quantized: Graph, batches: Sequence[Batch], means: Mapping[Node, np.ndarray]) -> None:
    """Correct biases in place; nodes have to be the graph's own. means: of the float model, by the quantized nodes."""
    run = _Stepwise(quantized, batches)
    for position, node in enumerate(quantized.nodes):
        if node in means:
            _add_to_bias(node, means[node] - run.mean_before(position))


class _Stepwise:
    """Runs a graph from one position to the next, and holds what later nodes need, for each batch."""

    def __init__(self, graph: Graph, batches: Sequence[Batch]):
        self._graph = graph
        self._held: list[dict[Tensor, np.ndarray]] = [
            dict(zip(graph.inputs, as_inputs(graph, batch), strict=True)) for batch in batches
        ]
        self._done = 0

    def mean_before(self, position: int) -> np.ndarray:
        """Of what the linear node at that position computes before its activation: real numbers, (channels,)."""
        node = self._graph.nodes[position]
        x = node.inputs[LINEAR[node.op].x]
        real = Tensor(x.name, FLOAT32, x.shape)
        plain = _without_activation(node, [real if t is x else _real_constant(t) for t in node.inputs])
        nodes = [*self._graph.nodes[self._done : position], Node("DEQUANTIZE", [x], [real]), plain]
        live = self._live(position)
        read = {tensor for step in nodes for tensor in step.inputs}
        given = [tensor for tensor in self._held[0] if tensor in read]
        computed = [tensor for tensor in live if tensor not in self._held[0]]
        part = Graph(nodes, given, [str(i) for i in range(len(given))])
        execution = Execution(part, [*computed, plain.outputs[0]])
        mean = _Mean(channels_of(node))
        for number, held in enumerate(self._held):
            *found, result = execution([held[tensor] for tensor in given])
            held.update(zip(computed, found, strict=True))
            self._held[number] = {tensor: held[tensor] for tensor in live}
            mean.add(result)
        self._done = position
        return mean.value()

    def _live(self, position: int) -> list[Tensor]:
        """What exists before the node at that position and is read by it or later ones."""
        later = self._graph.nodes[position:]
        made = {tensor for node in later for tensor in node.outputs}
        read = dict.fromkeys(t for node in later for t in node.inputs if t is not None and not t.is_constant)
        return [tensor for tensor in read if tensor not in made]


class _Mean:
    """Of each channel, the last axis, over everything else."""

    def __init__(self, channels: int):
        self._sum = np.zeros(channels)
        self._rows = 0

    def add(self, array: np.ndarray) -> None:
        rows = array.reshape(-1, self._sum.size)
        self._sum += rows.sum(axis=0, dtype=np.float64)
        self._rows += len(rows)

    def value(self) -> np.ndarray:
        return self._sum / max(self._rows, 1)


def _without_activation(node: Node, inputs: Sequence[Tensor | None]) -> Node:
    output = Tensor(node.outputs[0].name, FLOAT32, node.outputs[0].shape)
    return Node(node.op, list(inputs), [output], dataclasses.replace(node.attributes, activation="NONE"), node.name)


def _real_constant(tensor: Tensor | None) -> Tensor | None:
    if tensor is None or tensor.quantization is None:
        return tensor
    return Tensor.from_array(tensor.name, dequantize(tensor.value, tensor.quantization))


def _add_to_bias(node: Node, shift: np.ndarray) -> None:
    """shift: in real numbers, (channels,)."""
    operands = LINEAR[node.op]
    x, weights, bias = node.inputs[operands.x], node.inputs[operands.weights], bias_of(node)
    if bias is None:
        dtype: Any = BIASES[x.dtype][0]
        scale = np.broadcast_to(x.quantization.scale * weights.quantization.scale, shift.shape)
        bias = Tensor.from_array(f"{node.name}/bias", np.zeros(shift.shape, dtype), Quantization(scale))
    scale = bias.quantization.scale
    steps = round_half_away(shift / scale.astype(np.float64)).astype(np.int64)
    limit = 2 ** (8 * bias.dtype.itemsize - 1) - 1
    after = np.clip(bias.value + steps, -limit, limit)
    corrected = Tensor.from_array(bias.name, after.astype(bias.dtype), bias.quantization)
    node.inputs = [*node.inputs[: operands.bias], *[None] * (operands.bias - len(node.inputs)), corrected]

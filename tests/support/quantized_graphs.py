"""Checks of a quantized graph, node by node: against the float op on the same numbers, and LiteRT's integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from schema import Graph, Node, Tensor, TensorType, evaluate, ops
from schema.fixedpoint import dequantize
from tests.support.litert import Operand
from tests.support.parity import assert_parity

CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")


def values_of(graph: Graph, arrays: Sequence[np.ndarray]) -> dict[Tensor, np.ndarray]:
    """Every tensor's array when the graph runs on these inputs."""
    tensors = graph.tensors()
    kept = evaluate.run(graph, arrays, keep=tensors)[len(graph.outputs) :]
    return dict(zip(tensors, kept, strict=True))


def quantized_nodes(graph: Graph) -> list[Node]:
    """The nodes that compute int8 or int16."""
    return [n for n in graph.nodes if n.outputs[0].dtype in (np.int8, np.int16) and n.op not in CONVERSIONS]


def errors_in_steps(graph: Graph, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Node, float]]:
    """For each quantized node the largest difference from the float op on the same inputs, in steps of its output."""
    values = values_of(graph, arrays)
    for node in quantized_nodes(graph):
        real = [None if t is None else _real(t, values[t]) for t in node.inputs]
        types = [None if a is None else TensorType(a.shape, a.dtype) for a in real]
        op = ops.get(node.op)
        expected = op.reference(node.attributes, real, types, op.infer(node.attributes, types, real))
        for tensor, array in zip(node.outputs, expected, strict=True):
            scale, zero_point = tensor.quantization.scale[0], tensor.quantization.zero_point[0]
            info = np.iinfo(tensor.dtype)
            inside = np.clip(array, (info.min - zero_point) * scale, (info.max - zero_point) * scale)
            yield node, float(np.abs(_real(tensor, values[tensor]) - inside).max() / scale)


def _real(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    return array if tensor.quantization is None else dequantize(array, tensor.quantization)


def assert_litert_equal(graph: Graph, arrays: Sequence[np.ndarray]) -> None:
    """Every quantized node with one output gives the bytes that LiteRT's reference kernel gives."""
    values = values_of(graph, arrays)
    for node in quantized_nodes(graph):
        inputs = [None if t is None else Operand(values[t], t.quantization, t.is_constant) for t in node.inputs]
        (output,) = node.outputs
        np.testing.assert_array_equal(
            assert_parity(node.op, node.attributes, inputs, output.quantization), values[output], err_msg=str(node)
        )

"""Rewriting a float graph to int8: integer tensors, quantized constants, and conversions where int8 and float meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.moments import Moments
from converter.quantize.placement import Placement, is_real
from converter.quantize.rules import TYPELESS, Rule, Scales
from converter.quantize.scales import ActivationScales, asymmetric, constant_range
from converter.quantize.weights import QuantizedLinear, quantize_linear
from schema import fixedpoint
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import DTypeAttributes
from schema.quantization import Quantization

INT8 = np.dtype(np.int8)


@dataclass
class Rewritten:
    """What a graph becomes; the graph itself is not changed. linear: the quantized operands of its linear nodes."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    linear: dict[Node, QuantizedLinear] = field(default_factory=dict)


def rewrite(
    placement: Placement, scales: ActivationScales, moments: Mapping[Tensor, Moments], integer_io: bool
) -> Rewritten:
    """The graph with the placement's nodes in int8.

    moments: of what the weights in a linear op meet, by the weights.
    integer_io: float32 inputs and outputs become int8 ones. Otherwise the signature stays, with QUANTIZE and
    DEQUANTIZE inside.
    """
    return _Rewrite(placement, scales, moments, integer_io).run()


class _Rewrite:
    def __init__(
        self, placement: Placement, scales: ActivationScales, moments: Mapping[Tensor, Moments], integer_io: bool
    ):
        self._placement = placement
        self._scales = scales
        self._moments = moments
        self._integer_io = integer_io
        self._result = Rewritten()
        self._int8: dict[Tensor, Tensor] = {}  # the int8 form of float tensors, in their own scale
        self._requantized: dict[tuple, Tensor] = {}  # and in other scales
        self._float: set[Tensor] = set()  # float tensors that exist in the new graph
        self._constants: dict[tuple, Tensor] = {}

    def run(self) -> Rewritten:
        graph, result = self._placement.graph, self._result
        for tensor in graph.inputs:
            if self._integer_io and is_real(tensor):
                result.inputs.append(self._new(tensor))
            else:
                self._float.add(tensor)
                result.inputs.append(tensor)
        for node in graph.nodes:
            rule = self._placement.rules.get(node)
            result.nodes.append(self._keep(node) if rule is None else self._quantize(node, rule))
        for tensor in graph.outputs:
            if not is_real(tensor) or tensor.is_constant:
                result.outputs.append(tensor)
            elif self._integer_io:
                result.outputs.append(self._as_int8(tensor, self._scales.of(tensor)))
            else:
                result.outputs.append(self._as_float(tensor))
        return result

    # ---- nodes ----

    def _keep(self, node: Node) -> Node:
        """A node that stays as it is."""
        self._float.update(tensor for tensor in node.outputs if is_real(tensor))
        inputs = [
            tensor
            if tensor is None or not is_real(tensor) or tensor.is_constant
            else self._either(tensor)
            if node.op in TYPELESS
            else self._as_float(tensor)
            for tensor in node.inputs
        ]
        return Node(node.op, inputs, node.outputs, node.attributes, node.name)

    def _quantize(self, node: Node, rule: Rule) -> Node:
        inputs, shared = list(node.inputs), self._scales.into(node)
        for i, tensor in self._placement.data(node):
            if tensor.is_constant:
                inputs[i] = self._constant(tensor, shared)
            else:
                inputs[i] = self._as_int8(tensor, shared or self._scales.of(tensor))
        outputs = node.outputs if rule.scales is Scales.INDICES else [self._new(tensor) for tensor in node.outputs]
        if rule.weights is not None:
            data, output = inputs[rule.data_inputs(0)[0]], outputs[0]
            self._quantize_weights(node, rule, inputs, _scale(data), _scale(output))
        return Node(node.op, inputs, outputs, node.attributes, node.name)

    def _quantize_weights(
        self, node: Node, rule: Rule, inputs: list[Tensor | None], input_scale: float, output_scale: float
    ) -> None:
        assert rule.weights is not None
        weights = inputs[rule.weights.weights]
        bias = inputs[rule.weights.bias] if len(inputs) > rule.weights.bias else None
        assert weights is not None
        linear = quantize_linear(
            weights, rule.weights.axis, bias, input_scale, output_scale, self._moments.get(weights)
        )
        # Layers that share a kernel share its integers, unless a bias made them differ.
        earlier = self._constants.setdefault((weights, rule.weights.axis), linear.weights)
        if earlier.quantization == linear.weights.quantization and np.array_equal(earlier.value, linear.weights.value):
            linear.weights = earlier
        inputs[rule.weights.weights] = linear.weights
        if bias is not None:
            inputs[rule.weights.bias] = linear.bias
        self._result.linear[node] = linear

    # ---- tensors ----

    def _new(self, tensor: Tensor) -> Tensor:
        """The int8 tensor that takes a float activation's place."""
        self._int8[tensor] = Tensor(tensor.name, INT8, tensor.shape, self._scales.of(tensor))
        return self._int8[tensor]

    def _either(self, tensor: Tensor) -> Tensor:
        return tensor if tensor in self._float else self._int8[tensor]

    def _as_float(self, tensor: Tensor) -> Tensor:
        if tensor not in self._float:
            self._result.nodes.append(Node("DEQUANTIZE", [self._int8[tensor]], [tensor]))
            self._float.add(tensor)
        return tensor

    def _as_int8(self, tensor: Tensor, wanted: Quantization) -> Tensor:
        own = self._int8.get(tensor)
        if own is not None and own.quantization == wanted:
            return own
        key = (tensor, _key(wanted))
        if key not in self._requantized:
            source = tensor if own is None else own
            target = Tensor(tensor.name, INT8, tensor.shape, wanted)
            self._result.nodes.append(Node("QUANTIZE", [source], [target], DTypeAttributes(INT8)))
            self._requantized[key] = target
        return self._requantized[key]

    def _constant(self, tensor: Tensor, wanted: Quantization | None) -> Tensor:
        """An operand that is constant, quantized as an activation: with the wanted parameters or those of its own
        range.
        """
        real = tensor.value
        assert real is not None
        if wanted is None:
            wanted = asymmetric(*constant_range(tensor))
        key = (tensor, _key(wanted))
        if key not in self._constants:
            self._constants[key] = Tensor.from_array(tensor.name, fixedpoint.quantize(real, wanted, INT8), wanted)
        return self._constants[key]


def _key(quantization: Quantization) -> tuple[float, int]:
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def _scale(tensor: Tensor | None) -> float:
    assert tensor is not None and tensor.quantization is not None
    return float(tensor.quantization.scale[0])


def commit(graph: Graph, rewritten: Rewritten) -> None:
    """Make the graph what it was rewritten to."""
    graph.nodes, graph.inputs, graph.outputs = rewritten.nodes, rewritten.inputs, rewritten.outputs

"""Rewriting a float graph to integers: integer tensors, quantized constants, and conversions where types meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.moments import Moments
from converter.quantize.placement import Placement, is_constant_fill, is_real
from converter.quantize.rules import INT8, TYPELESS, Rule, Scales
from converter.quantize.scales import ActivationScales, constant_range, parameters
from converter.quantize.weights import QuantizedLinear, quantize_linear
from schema import fixedpoint
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import DTypeAttributes
from schema.quantization import Quantization


@dataclass
class Rewritten:
    """What a graph becomes; the graph itself is not changed. linear: the quantized operands of its linear nodes.
    replaced: FILL nodes of float32 that integers took the place of.
    """

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    linear: dict[Node, QuantizedLinear] = field(default_factory=dict)
    replaced: set[Node] = field(default_factory=set)


def rewrite(
    placement: Placement,
    scales: ActivationScales,
    moments: Mapping[Tensor, Moments],
    io_dtype: np.dtype | None,
    trained: bool = False,
    ends: Mapping[int, Quantization] | None = None,
) -> Rewritten:
    """The graph with the placement's nodes in integers.

    moments: of what the weights in a linear op meet, by the weights.
    io_dtype: what float32 inputs and outputs become. None: the signature stays, with QUANTIZE and DEQUANTIZE inside.
    trained: weights that are integers times a step keep both.
    ends: what outputs have, by position, where it is not what their tensors have by themselves.
    """
    return _Rewrite(placement, scales, moments, io_dtype, trained, ends or {}).run()


class _Rewrite:
    def __init__(
        self,
        placement: Placement,
        scales: ActivationScales,
        moments: Mapping[Tensor, Moments],
        io_dtype: np.dtype | None,
        trained: bool,
        ends: Mapping[int, Quantization],
    ):
        self._placement = placement
        self._trained = trained
        self._ends = ends
        self._scales = scales
        self._moments = moments
        self._io_dtype = io_dtype
        self._result = Rewritten()
        self._own: dict[Tensor, Tensor] = {}  # what float tensors are in the new graph, where they are made
        self._converted: dict[tuple, Tensor] = {}  # and in other dtypes and scales
        self._float: set[Tensor] = set()  # float tensors that exist in the new graph
        self._again: set[Tensor] = set()  # integers of pairs that are nodes
        self._constants: dict[tuple, Tensor] = {}
        fills = [node for node in placement.graph.nodes if is_constant_fill(node)]
        self._fills = {node.outputs[0]: node for node in fills if is_real(node.outputs[0])}

    def run(self) -> Rewritten:
        graph, result = self._placement.graph, self._result
        for tensor in graph.inputs:
            if self._io_dtype is not None and is_real(tensor):
                result.inputs.append(self._new(tensor, self._io_dtype))
            else:
                self._float.add(tensor)
                result.inputs.append(tensor)
        for node in graph.nodes:
            rule = self._placement.rules.get(node)
            if rule is not None:
                result.nodes.append(self._quantize(node, rule))
            elif not self._rounds_again(node):
                result.nodes.append(self._keep(node))
        for i, tensor in enumerate(graph.outputs):
            if not is_real(tensor) or tensor.is_constant:
                result.outputs.append(tensor)
            elif self._io_dtype is not None:
                wanted = self._ends.get(i) or self._scales.of(tensor, self._io_dtype)
                result.outputs.append(self._as_integers(tensor, self._io_dtype, wanted))
            else:
                result.outputs.append(self._as_float(tensor))
        self._remove_unread_fills()
        return result

    # ---- nodes ----

    def _rounds_again(self, node: Node) -> bool:
        """Whether the node is of a pair that rounds to another range what is integers already (see `learned.lift`).
        Integers are then made of integers, and what reads the pair's result reads these.
        """
        source = node.inputs[0] if node.inputs else None
        if node.op == "QUANTIZE" and source in self._own:
            self._result.nodes.append(Node("QUANTIZE", [self._own[source]], node.outputs, node.attributes, node.name))
            self._again.update(node.outputs)
            return True
        if node.op == "DEQUANTIZE" and source in self._again:
            self._own[node.outputs[0]] = source
            return True
        return False

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
        carried = self._scales.carried(node) if rule.scales is Scales.CARRIED else {}
        for i, tensor in self._placement.data(node):
            wanted = carried.get(i, shared)
            if tensor.is_constant:
                inputs[i] = self._constant(tensor, rule.dtype, wanted)
            else:
                inputs[i] = self._as_integers(tensor, rule.dtype, wanted or self._scales.of(tensor, rule.dtype))
        if rule.slopes is not None:
            slopes = inputs[rule.slopes]
            assert slopes is not None
            inputs[rule.slopes] = self._constant(slopes, INT8, None)
        outputs = list(node.outputs)
        if rule.scales is not Scales.INDICES:
            outputs = [self._new(t, rule.dtype) if is_real(t) else t for t in node.outputs]
        if rule.weights is not None:
            self._quantize_weights(node, rule, inputs, outputs[0])
        return Node(node.op, inputs, outputs, node.attributes, node.name)

    def _quantize_weights(self, node: Node, rule: Rule, inputs: list[Tensor | None], output: Tensor) -> None:
        assert rule.weights is not None
        weights = inputs[rule.weights.weights]
        bias = inputs[rule.weights.bias] if len(inputs) > rule.weights.bias else None
        assert weights is not None
        scales = _scale(inputs[rule.data_inputs(0)[0]]), _scale(output)
        moments = self._moments.get(weights)
        linear = quantize_linear(weights, rule.weights.axis, bias, *scales, moments, rule.dtype, self._trained)
        # Layers that share a kernel share its integers, unless a bias made them differ.
        earlier = self._constants.setdefault((weights, rule.weights.axis), linear.weights)
        if earlier.quantization == linear.weights.quantization and np.array_equal(earlier.value, linear.weights.value):
            linear.weights = earlier
        inputs[rule.weights.weights] = linear.weights
        if bias is not None:
            inputs[rule.weights.bias] = linear.bias
        self._result.linear[node] = linear

    # ---- tensors ----

    def _new(self, tensor: Tensor, dtype: np.dtype) -> Tensor:
        """The integer tensor that takes a float activation's place."""
        self._own[tensor] = Tensor(tensor.name, dtype, tensor.shape, self._scales.of(tensor, dtype))
        return self._own[tensor]

    def _either(self, tensor: Tensor) -> Tensor:
        return tensor if tensor in self._float else self._own[tensor]

    def _as_float(self, tensor: Tensor) -> Tensor:
        if tensor not in self._float:
            self._result.nodes.append(Node("DEQUANTIZE", [self._own[tensor]], [tensor]))
            self._float.add(tensor)
        return tensor

    def _as_integers(self, tensor: Tensor, dtype: np.dtype, wanted: Quantization) -> Tensor:
        own = self._own.get(tensor)
        if own is not None and own.dtype == dtype and own.quantization == wanted:
            return own
        key = (tensor, dtype, _key(wanted))
        if key not in self._converted:
            target = Tensor(tensor.name, dtype, tensor.shape, wanted)
            fill = self._fills.get(tensor)
            if fill is not None:
                value = self._constant(fill.inputs[1], dtype, wanted)  # type: ignore[arg-type]
                self._result.nodes.append(Node("FILL", [fill.inputs[0], value], [target], None, fill.name))
            else:
                source = own or self._as_learned(tensor, dtype, wanted)
                self._result.nodes.append(Node("QUANTIZE", [source], [target], DTypeAttributes(dtype)))
            self._converted[key] = target
        return self._converted[key]

    def _remove_unread_fills(self) -> None:
        """Of float32, where all that read them became integers."""
        read = {tensor for node in self._result.nodes for tensor in node.inputs} | set(self._result.outputs)
        unread = self._fills.keys() - read
        self._result.nodes = [node for node in self._result.nodes if unread.isdisjoint(node.outputs)]
        self._result.replaced = {self._fills[tensor] for tensor in unread}

    def _as_learned(self, tensor: Tensor, dtype: np.dtype, wanted: Quantization) -> Tensor:
        """A float tensor, rounded first as it was while training, where that is another rounding than the wanted."""
        learned = self._scales.learned(tensor)
        if learned is None or learned == (dtype, wanted):
            return tensor
        return self._as_integers(tensor, *learned)

    def _constant(self, tensor: Tensor, dtype: np.dtype, wanted: Quantization | None) -> Tensor:
        """An operand that is constant, quantized as an activation: with the wanted parameters or those of its own
        range.
        """
        real = tensor.value
        assert real is not None
        if wanted is None:
            wanted = parameters(*constant_range(tensor), dtype)
        key = (tensor, dtype, _key(wanted))
        if key not in self._constants:
            self._constants[key] = Tensor.from_array(tensor.name, fixedpoint.quantize(real, wanted, dtype), wanted)
        return self._constants[key]


def _key(quantization: Quantization) -> tuple[float, int]:
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def _scale(tensor: Tensor | None) -> float:
    assert tensor is not None and tensor.quantization is not None
    return float(tensor.quantization.scale[0])


def commit(graph: Graph, rewritten: Rewritten) -> None:
    """Make the graph what it was rewritten to. What a loop's condition is given has the types of the operands."""
    for node in rewritten.nodes:
        if node.op == "WHILE":
            for given, tensor in zip(node.inputs, node.attributes.condition.inputs, strict=True):
                assert given is not None
                tensor.dtype, tensor.quantization = given.dtype, given.quantization
    graph.nodes, graph.inputs, graph.outputs = rewritten.nodes, rewritten.inputs, rewritten.outputs

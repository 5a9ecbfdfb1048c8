"""Ranges that quantization-aware training learned: the QUANTIZE and DEQUANTIZE pairs that the front end makes of
FakeQuant nodes become parameters of the tensors that they round.

A pair says two things: where the source rounds, and by which scale and zero point. Once the second is known, the first
follows from placement, so that the pairs can go: in the integer graph the tensor itself is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

import numpy as np

from converter.quantize.layers import Wanted
from converter.quantize.placement import is_constant_fill, is_real
from converter.quantize.rules import INT8, INT16, RULES, TYPELESS, Scales
from schema.graph import Graph, Node, Tensor, nested
from schema.quantization import Quantization

MOVING = frozenset({"RESHAPE", "TRANSPOSE", "SQUEEZE", "EXPAND_DIMS"})
"""Ops whose result has the numbers of their first input, all of them: what rounds one rounds the other."""

NOT_LEARNED = "no range was learned for {}: its layer is not quantize-aware"


@dataclass(frozen=True)
class Learned:
    """parameters: of tensors, in the dtype that they were learned for. carried: of what loops carry, as int16, which
    follows from them. steps: of int8 numbers, as int16 ones.
    """

    parameters: Mapping[Tensor, tuple[np.dtype, Quantization]] = field(default_factory=dict)
    carried: Mapping[Tensor, Quantization] = field(default_factory=dict)
    steps: Mapping[Tensor, Quantization] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.parameters)

    def of(self, tensor: Tensor, dtype: np.dtype) -> Quantization | None:
        """What was learned for the tensor in that dtype."""
        found = self.parameters.get(tensor)
        if found is not None and found[0] == dtype:
            return found[1]
        return self.carried.get(tensor, self.steps.get(tensor)) if dtype == INT16 else None

    def moved(self, graph: Graph, tensor: Tensor) -> Quantization | None:
        """What was learned for the tensor as int16, or for one whose numbers are moved into it."""
        maker = {output: node for node in graph.nodes for output in node.outputs}
        waiting, seen = [tensor], set()
        while waiting:
            source = waiting.pop()
            node = maker.get(source)
            rule = None if node is None else RULES[INT16].get(node.op)
            found = self.of(source, INT16) or (None if rule is None else rule.fixed)
            if found is not None:
                return found
            if node is not None and rule is not None and rule.scales is Scales.SHARED and source not in seen:
                data = [node.inputs[i] for i in rule.data_inputs(len(node.inputs))]
                waiting += [t for t in reversed(data) if t is not None and not t.is_constant]
            seen.add(source)
        return None

    def and_carried(self, known: Mapping[Tensor, Quantization]) -> Learned:
        """With more that loops carry."""
        return replace(self, carried={**self.carried, **known})

    def widened(self, int16: Set[Node], graph: Graph) -> Learned:
        """With int8 numbers as int16 ones of the same steps, where nodes other than these make them."""
        own = {tensor for node in graph.nodes if node in int16 for tensor in node.outputs}
        narrow = {t: Quantization(q.scale, 0) for t, (dtype, q) in self.parameters.items() if dtype == INT8}
        return replace(self, steps={tensor: q for tensor, q in narrow.items() if tensor not in own})

    def int16(self, graph: Graph) -> set[Node]:
        """Nodes whose result was learned as int16, and those that only move such results."""
        wide = {tensor for tensor, (dtype, _) in self.parameters.items() if dtype == INT16} | self.carried.keys()
        nodes: set[Node] = set()
        for node in graph.nodes:
            rule = RULES[INT16].get(node.op)
            if rule is None or node.op in TYPELESS:
                continue
            data = [node.inputs[i] for i in rule.data_inputs(len(node.inputs))]
            moved = rule.scales in (Scales.SHARED, Scales.FIXED) and any(tensor in wide for tensor in data)
            own = [tensor for tensor in node.outputs if tensor in self.parameters]
            if any(tensor in wide for tensor in own) or (moved and not own):
                nodes.add(node)
                wide.update(node.outputs)
        return nodes


def has_learned(graph: Graph) -> bool:
    """Whether `lift` would find something, in the graph or in those that its nodes run."""
    return any(True for part in nested(graph) for _ in _pairs(part))


def lift(graph: Graph) -> Learned:
    """Take the pairs out of the graph. A tensor that is rounded in several ways keeps the pairs of all but the first,
    which then are nodes whose results have the ranges of these. What only moves such a tensor's numbers has its
    parameters: the passes move reshapes behind the rounding, and a reshape of what a float layer made stays float.
    """
    parameters: dict[Tensor, tuple[np.dtype, Quantization]] = {}
    replaced: dict[Tensor, Tensor] = {}
    gone: set[Node] = set()
    zeros = {node.outputs[0] for node in graph.nodes if _fills_zeros(node)}  # of any range, as one initial state is
    for quantize, dequantizes in _pairs(graph):
        source = replaced.get(quantize.inputs[0], quantize.inputs[0])
        (integers,) = quantize.outputs
        found = integers.dtype, integers.quantization
        if parameters.setdefault(source, found) == found or source in zeros:
            replaced.update((node.outputs[0], source) for node in dequantizes)
            gone.update((quantize, *dequantizes))
        else:
            parameters.update((node.outputs[0], found) for node in dequantizes)
    for node in graph.nodes:
        node.inputs = [replaced.get(tensor, tensor) for tensor in node.inputs]
    graph.nodes = [node for node in graph.nodes if node not in gone]
    graph.outputs = [replaced.get(tensor, tensor) for tensor in graph.outputs]
    for node in graph.nodes:
        if node.op in MOVING and node.inputs[0] in parameters:
            parameters.setdefault(node.outputs[0], parameters[node.inputs[0]])
    return Learned(parameters)


def _fills_zeros(node: Node) -> bool:
    return is_constant_fill(node) and not node.inputs[1].value.any()  # type: ignore[union-attr]


def _pairs(graph: Graph):
    """(QUANTIZE, the DEQUANTIZEs that alone read it), of computed float tensors that have one scale."""
    readers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor is not None:
                readers.setdefault(tensor, []).append(node)
    for node in graph.nodes:
        if node.op != "QUANTIZE" or not is_real(node.inputs[0]) or node.inputs[0].is_constant:
            continue
        (integers,) = node.outputs
        known = integers.quantization is not None and not integers.quantization.per_channel
        users = readers.get(integers, [])
        if not known or integers.dtype not in (INT8, INT16) or integers in graph.outputs:
            continue
        if users and all(user.op == "DEQUANTIZE" for user in users):
            yield node, users


def with_learned(wanted: Wanted, learned: Learned, graph: Graph) -> Wanted:
    """What was asked for, with the dtypes that were learned."""
    narrow = {tensor for tensor, (dtype, _) in learned.parameters.items() if dtype == INT8}
    int8 = {node for node in graph.nodes if not narrow.isdisjoint(node.outputs)}
    return replace(wanted, int16=wanted.int16 | learned.int16(graph), int8=int8)

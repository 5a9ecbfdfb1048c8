"""Which nodes run in int8, which in int16 and which stay float, and why.

A node has to have a rule and operands that the rule can take. Cheap nodes between float ones stay float as well:
quantizing them would cost two conversions and precision (the variance of a LayerNormalization would lose its small
values). For the same reason cheap int8 nodes between int16 ones become int16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from converter.quantize.layers import Wanted
from converter.quantize.rules import INT8, INT16, RULES, TYPELESS, Rule, Scales, why_float
from schema.graph import Graph, Node, Tensor

FLOAT32 = np.dtype(np.float32)


@dataclass
class Placement:
    """rules: of the nodes that become integer ones. reasons: why others that compute real numbers stay float."""

    graph: Graph
    wanted: Wanted = field(default_factory=Wanted)
    rules: dict[Node, Rule] = field(default_factory=dict)
    reasons: dict[Node, str] = field(default_factory=dict)

    def data(self, node: Node) -> list[tuple[int, Tensor]]:
        """(position, tensor) of a quantized node's inputs that hold real numbers, without weights, bias and slopes."""
        inputs = [(i, node.inputs[i]) for i in self.rules[node].data_inputs(len(node.inputs))]
        return [(i, tensor) for i, tensor in inputs if tensor is not None]

    def activations(self, node: Node) -> list[tuple[int, Tensor]]:
        """`data` without constants."""
        return [(i, tensor) for i, tensor in self.data(node) if not tensor.is_constant]

    def without(self, unbounded: Mapping[Tensor, str]) -> Placement:
        """The same, with nodes that touch these tensors float, and perhaps others then. No node changes its dtype."""
        int16 = {node for node, rule in self.rules.items() if rule.dtype == INT16}
        return place(self.graph, unbounded, replace(self.wanted, int16=int16))


def is_real(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == FLOAT32


def place(graph: Graph, unbounded: Mapping[Tensor, str] | None = None, wanted: Wanted | None = None) -> Placement:
    """unbounded: tensors that no scale can represent, and why. wanted: what was asked for, by default int8."""
    unbounded, wanted = unbounded or {}, wanted or Wanted()
    placement = Placement(graph, wanted)
    for node in graph.nodes:
        if node.op in TYPELESS or not any(is_real(t) for t in (*node.inputs, *node.outputs)):
            continue
        dtype = wanted.of(node)
        reason = wanted.kept.get(node)
        if node in wanted.loops and reason is None:
            placement.rules[node] = wanted.loops[node]
            continue
        reason = reason or _obstacle(node, dtype, unbounded)
        if reason is None:
            placement.rules[node] = RULES[dtype][node.op]
        else:
            placement.reasons[node] = reason
    neighbours = _Neighbours(graph)
    _spread_float(placement, neighbours)
    _spread_int16(placement, neighbours, unbounded)
    return placement


def _obstacle(node: Node, dtype: np.dtype, unbounded: Mapping[Tensor, str]) -> str | None:
    """Why a node cannot have activations of this dtype whatever surrounds it."""
    rule = RULES[dtype].get(node.op)
    if rule is None:
        return why_float(node.op, dtype)
    data = [node.inputs[i] for i in rule.data_inputs(len(node.inputs))]
    outputs = [] if rule.scales is Scales.INDICES else node.outputs
    for tensor in (*data, *outputs):
        if not is_real(tensor):
            return f"{dtype} stands for float32 numbers only, not for {'nothing' if tensor is None else tensor.dtype}"
        assert tensor is not None
        if tensor in unbounded:
            return unbounded[tensor]
        if tensor.is_constant and not np.isfinite(tensor.value).all():
            return "a constant operand is not finite"
    if all(tensor is None or tensor.is_constant for tensor in node.inputs):
        return "all its operands are constants"
    return _weights_obstacle(node, rule)


def _weights_obstacle(node: Node, rule: Rule) -> str | None:
    stored: list[tuple[str, int | None]] = [("slopes", rule.slopes)]
    if rule.weights is not None:
        stored = [("weights", rule.weights.weights), ("bias", rule.weights.bias)]
    for what, position in stored:
        tensor = None if position is None or position >= len(node.inputs) else node.inputs[position]
        if tensor is None:
            continue
        if not tensor.is_constant:
            return f"its {what} are computed, not constant"
        if not is_real(tensor) or not np.isfinite(tensor.value).all():
            return f"its {what} are not finite float32 numbers"
    return None


class _Neighbours:
    """producer: of each tensor. consumers: the nodes that read its values. Without those that are neither float nor
    integer themselves: conversions between the two, and constants that are filled in when running.
    """

    def __init__(self, graph: Graph):
        made = [node for node in graph.nodes if node.op != "DEQUANTIZE" and not is_constant_fill(node)]
        self.producer = {tensor: node for node in made for tensor in node.outputs}
        self.consumers: dict[Tensor, list[Node]] = {}
        for node in graph.nodes:
            for tensor in node.inputs:
                if tensor is not None and node.op not in TYPELESS and node.op != "QUANTIZE":
                    self.consumers.setdefault(tensor, []).append(node)

    def makers(self, placement: Placement, node: Node) -> list[Node]:
        """Of a quantized node's activations."""
        return [self.producer[t] for _, t in placement.activations(node) if t in self.producer]

    def users(self, node: Node) -> list[Node]:
        return [user for tensor in node.outputs for user in self.consumers.get(tensor, [])]


def is_constant_fill(node: Node) -> bool:
    """Whether it fills in a number that is known."""
    value = node.inputs[1] if node.op == "FILL" else None
    return value is not None and value.is_constant


def _spread_float(placement: Placement, neighbours: _Neighbours) -> None:
    """Move cheap nodes between float ones to float, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for node in placement.graph.nodes:
            rule = placement.rules.get(node)
            if rule is None or rule.costly or not placement.activations(node):
                continue
            made = [maker in placement.reasons for maker in neighbours.makers(placement, node)]
            used = [user in placement.reasons for user in neighbours.users(node)]
            # Moving integers is exact, so one integer source is reason enough to stay; arithmetic on a float operand
            # is not.
            sources = [all, any][rule.scales is not Scales.SHARED]
            if (made and sources(made)) or (used and all(used)):
                del placement.rules[node]
                placement.reasons[node] = "it stands between operations that stay float"
                changed = True


def _spread_int16(placement: Placement, neighbours: _Neighbours, unbounded: Mapping[Tensor, str]) -> None:
    """Move cheap int8 nodes between int16 ones to int16. So do those that move numbers between int16 nodes and the
    graph's signature.
    """

    def can_be(node: Node) -> bool:
        rule = placement.rules[node]
        free = rule.dtype == INT8 and not rule.costly and node not in placement.wanted.int8
        return free and _obstacle(node, INT16, unbounded) is None

    wide = {node for node, rule in placement.rules.items() if rule.dtype == INT16}
    moved = {node for node in placement.rules if can_be(node)}
    around = {node: (neighbours.makers(placement, node), neighbours.users(node)) for node in moved}
    changed = True
    while changed:
        changed = False
        for node in [node for node in placement.rules if node in moved]:
            makers, users = around[node]
            ended = placement.rules[node].scales is Scales.SHARED or (makers and users)
            if not ended or not all(other in wide or other in moved for other in (*makers, *users)):
                moved.remove(node)
                changed = True
    # Of what is left, that which an int16 node is next to.
    reached = [node for node in moved if not wide.isdisjoint((*around[node][0], *around[node][1]))]
    while reached:
        node = reached.pop()
        if node in moved:
            moved.remove(node)
            placement.rules[node] = RULES[INT16][node.op]
            reached += [*around[node][0], *around[node][1]]

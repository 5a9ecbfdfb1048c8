"""Which nodes run in int8 and which stay float, and why.

A node has to have a rule and operands that the rule can take. Cheap nodes between float ones stay float as well:
quantizing them would cost two conversions and precision (the variance of a LayerNormalization would lose its small
values).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.rules import RULES, TYPELESS, Rule, Scales, why_float
from schema.graph import Graph, Node, Tensor

FLOAT32 = np.dtype(np.float32)


@dataclass
class Placement:
    """rules: of the nodes that become int8. reasons: why the other nodes that compute real numbers stay float."""

    graph: Graph
    rules: dict[Node, Rule] = field(default_factory=dict)
    reasons: dict[Node, str] = field(default_factory=dict)

    def data(self, node: Node) -> list[tuple[int, Tensor]]:
        """(position, tensor) of the inputs that hold an int8 node's real numbers, its weights and bias left out."""
        inputs = [(i, node.inputs[i]) for i in self.rules[node].data_inputs(len(node.inputs))]
        return [(i, tensor) for i, tensor in inputs if tensor is not None]

    def activations(self, node: Node) -> list[tuple[int, Tensor]]:
        """`data` without constants."""
        return [(i, tensor) for i, tensor in self.data(node) if not tensor.is_constant]


def is_real(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == FLOAT32


def place(graph: Graph, unbounded: Mapping[Tensor, str] | None = None) -> Placement:
    """unbounded: tensors that no scale can represent, and why."""
    unbounded = unbounded or {}
    placement = Placement(graph)
    for node in graph.nodes:
        if node.op in TYPELESS or not any(is_real(t) for t in (*node.inputs, *node.outputs)):
            continue
        reason = _obstacle(node, unbounded)
        if reason is None:
            placement.rules[node] = RULES[node.op]
        else:
            placement.reasons[node] = reason
    _spread(placement)
    return placement


def _obstacle(node: Node, unbounded: Mapping[Tensor, str]) -> str | None:
    """Why a node cannot be int8 whatever surrounds it."""
    rule = RULES.get(node.op)
    if rule is None:
        return why_float(node.op)
    data = [node.inputs[i] for i in rule.data_inputs(len(node.inputs))]
    outputs = [] if rule.scales is Scales.INDICES else node.outputs
    for tensor in (*data, *outputs):
        if not is_real(tensor):
            return f"int8 stands for float32 numbers only, not for {'nothing' if tensor is None else tensor.dtype}"
        assert tensor is not None
        if tensor in unbounded:
            return unbounded[tensor]
        if tensor.is_constant and not np.isfinite(tensor.value).all():
            return "a constant operand is not finite"
    if all(tensor is None or tensor.is_constant for tensor in node.inputs):
        return "all its operands are constants"
    return _weights_obstacle(node, rule)


def _weights_obstacle(node: Node, rule: Rule) -> str | None:
    if rule.weights is None:
        return None
    weights = node.inputs[rule.weights.weights]
    bias = node.inputs[rule.weights.bias] if len(node.inputs) > rule.weights.bias else None
    for what, tensor in (("weights", weights), ("bias", bias)):
        if tensor is None:
            continue
        if not tensor.is_constant:
            return f"its {what} are computed, not constant"
        if not is_real(tensor) or not np.isfinite(tensor.value).all():
            return f"its {what} are not finite float32 numbers"
    return None


def _spread(placement: Placement) -> None:
    """Move cheap nodes between float ones to float, until nothing changes."""
    graph = placement.graph
    producer = {tensor: node for node in graph.nodes for tensor in node.outputs}
    consumers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            if tensor is not None and node.op not in TYPELESS:
                consumers.setdefault(tensor, []).append(node)
    changed = True
    while changed:
        changed = False
        for node in graph.nodes:
            rule = placement.rules.get(node)
            if rule is None or rule.costly or not placement.activations(node):
                continue
            made = [producer[t] in placement.reasons for _, t in placement.activations(node) if t in producer]
            used = [user in placement.reasons for tensor in node.outputs for user in consumers.get(tensor, [])]
            # Moving integers is exact, so one int8 source is reason enough to stay; arithmetic on a float operand is
            # not.
            sources = [all, any][rule.scales is not Scales.SHARED]
            if (made and sources(made)) or (used and all(used)):
                del placement.rules[node]
                placement.reasons[node] = "it stands between operations that stay float"
                changed = True

"""Scales and zero points of activations: one group of tensors for each scale, merged where an op needs equal ones.

Tensors that an op only moves (reshape, pad, pooling, ...) share one group. Where an op joins several (concatenation,
maximum), an input joins the output's group if that costs little precision elsewhere; otherwise it is requantized on
its way into the op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.placement import Placement, is_real
from converter.quantize.rules import TYPELESS, Scales
from schema.graph import Graph, Node, Tensor
from schema.quantization import Quantization

LOW, HIGH = -128, 127
SMALLEST_SCALE = 1e-9  # products of two scales stay normal float32 numbers
COARSER = 1.5  # how much wider a range may become to spare requantizing; costs log2(1.5) = 0.6 bit

Range = tuple[float, float]


def asymmetric(low: float, high: float) -> Quantization:
    """int8 parameters of the range [low, high], widened to include zero, which they represent exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0  # nothing but zeros: any scale will do
    scale = np.float32(max((high - low) / (HIGH - LOW), SMALLEST_SCALE))
    zero_point = int(np.clip(np.rint(LOW - low / float(scale)), LOW, HIGH))
    return Quantization(scale, zero_point)


def representable(quantization: Quantization) -> Range:
    """(lowest, highest) real value that int8 numbers of these parameters stand for."""
    scale, zero_point = float(quantization.scale[0]), int(quantization.zero_point[0])
    return (LOW - zero_point) * scale, (HIGH - zero_point) * scale


def constant_range(tensor: Tensor) -> Range:
    """(smallest, largest) element of a constant, zero included."""
    assert tensor.value is not None
    return float(tensor.value.min(initial=0)), float(tensor.value.max(initial=0))


@dataclass(eq=False)
class Group:
    """Tensors of one scale. narrowest: the smallest width among the ranges that were merged, what merging is weighed
    against.
    """

    low: float = 0.0
    high: float = 0.0
    fixed: Quantization | None = None
    tensors: list[Tensor] = field(default_factory=list)
    narrowest: float = 0.0

    @property
    def width(self) -> float:
        return self.high - self.low

    def include(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def quantization(self) -> Quantization:
        return self.fixed or asymmetric(self.low, self.high)


class ActivationScales:
    """`of(tensor)`: the parameters of an activation. `into(node)`: those that a node's data inputs must have, where
    they must.
    """

    def __init__(self, placement: Placement, ranges: Mapping[Tensor, Range]):
        self._placement = placement
        self._ranges = ranges
        self._groups: dict[Tensor, Group] = {}
        self._consumers = _consumers(placement.graph)
        joins = []
        for node in placement.graph.nodes:
            if node not in placement.rules:
                continue
            for _, tensor in placement.activations(node):
                self._group(tensor)
            if self._add_outputs(node):
                joins.append(node)
        for group in {id(g): g for g in self._groups.values()}.values():
            group.narrowest = group.width
        for node in joins:
            self._join(node)
        self._final = {id(g): g.quantization() for g in self._groups.values()}

    def of(self, tensor: Tensor) -> Quantization:
        """Parameters of an activation. Tensors that no int8 node touches have those of their range."""
        group = self._groups.get(tensor)
        return asymmetric(*self._ranges[tensor]) if group is None else self._final[id(group)]

    def into(self, node: Node) -> Quantization | None:
        """What all data inputs of a node with shared scales must have, None for other nodes."""
        return self.of(node.outputs[0]) if self._placement.rules[node].scales is Scales.SHARED else None

    def _group(self, tensor: Tensor) -> Group:
        if tensor not in self._groups:
            group = Group(tensors=[tensor])
            group.include(*self._ranges[tensor])
            self._groups[tensor] = group
        return self._groups[tensor]

    def _add_outputs(self, node: Node) -> bool:
        """Make the outputs' groups. True where several activations have to be brought to one scale."""
        rule = self._placement.rules[node]
        if rule.scales is Scales.FIXED:
            (output,) = node.outputs
            assert rule.fixed is not None
            low, high = representable(rule.fixed)
            self._groups[output] = Group(low, high, rule.fixed, [output])
        elif rule.scales is Scales.FREE:
            for output in node.outputs:
                self._group(output)
        elif rule.scales is Scales.SHARED:
            return self._share(node)
        return False

    def _share(self, node: Node) -> bool:
        sources = [self._groups[tensor] for _, tensor in self._placement.activations(node)]
        if len(sources) == 1:
            group = sources[0]
        else:
            group = Group()
            for source in sources:
                group.include(source.low, source.high)
        for _, tensor in self._placement.data(node):
            if tensor.is_constant:
                group.include(*constant_range(tensor))
        for output in node.outputs:
            self._groups[output] = group
            group.tensors.append(output)
        return len(sources) > 1

    def _join(self, node: Node) -> None:
        """Merge the groups of a node's inputs with its output's, where that is better than requantizing."""
        for _, tensor in self._placement.activations(node):
            source, target = self._groups[tensor], self._groups[node.outputs[0]]
            if source is target:
                continue
            # Where nothing else reads the source, its own precision is of no use.
            narrowest = target.narrowest
            if not self._only_feeds(source, node):
                narrowest = min(source.narrowest, narrowest)
            if self._worthwhile(source, target, narrowest):
                self._merge(source, target, narrowest)

    def _worthwhile(self, source: Group, target: Group, narrowest: float) -> bool:
        low, high = min(source.low, target.low), max(source.high, target.high)
        fixed = source.fixed or target.fixed
        if fixed is not None:
            if source.fixed is not None and target.fixed is not None:
                return source.fixed == target.fixed
            lowest, highest = representable(fixed)
            step = float(fixed.scale[0])
            if low < lowest - step or high > highest + step:
                return False
            low, high = lowest, highest
        return high - low <= COARSER * narrowest

    def _only_feeds(self, group: Group, node: Node) -> bool:
        """Whether nothing but `node` reads the group's tensors, moves inside of the group aside."""
        for tensor in group.tensors:
            if tensor in self._placement.graph.outputs:
                return False
            for user in self._consumers.get(tensor, ()):
                rule = self._placement.rules.get(user)
                inside = rule is not None and rule.scales is Scales.SHARED and self._groups[user.outputs[0]] is group
                if user is not node and not inside:
                    return False
        return True

    def _merge(self, source: Group, target: Group, narrowest: float) -> None:
        target.include(source.low, source.high)
        target.fixed = target.fixed or source.fixed
        target.narrowest = narrowest
        target.tensors += source.tensors
        for tensor in source.tensors:
            self._groups[tensor] = target


def _consumers(graph: Graph) -> dict[Tensor, list[Node]]:
    consumers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            if is_real(tensor) and node.op not in TYPELESS:
                consumers.setdefault(tensor, []).append(node)
    return consumers

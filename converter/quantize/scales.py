"""Scales and zero points of activations: one group of tensors for each scale, merged where an op needs equal ones.

A tensor that both int8 and int16 nodes touch is in two groups, one for each form of it. Tensors that an op only moves
(reshape, pad, pooling, ...) share one group. Where an op joins several (concatenation, maximum), an input joins the
output's group if that costs little precision elsewhere; otherwise it is requantized on its way into the op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from converter.quantize.learned import Learned
from converter.quantize.placement import Placement, is_real
from converter.quantize.rules import INT8, INT16, TYPELESS, Scales
from schema.graph import Graph, Node, Tensor
from schema.quantization import Quantization

SMALLEST_SCALE = 1e-9  # products of two scales stay normal float32 numbers
HEADROOM = 2.0  # of int16 over the values seen: one of 16 bits, so that larger ones are not cut
COARSER = 1.5  # how much wider a range may become to spare requantizing; costs log2(1.5) = 0.6 bit

Range = tuple[float, float]


Form = tuple[Tensor, np.dtype]
"""A float tensor, as integers of a dtype."""


def parameters(low: float, high: float, dtype: np.dtype) -> Quantization:
    """Of the range [low, high], widened to include zero, which is exact: asymmetric for int8, symmetric for int16."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0  # nothing but zeros: any scale will do
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if dtype != INT8:
        return Quantization(np.float32(max(max(-low, high) / most, SMALLEST_SCALE)))
    scale = np.float32(max((high - low) / (most - least), SMALLEST_SCALE))
    zero_point = int(np.clip(np.rint(least - low / float(scale)), least, most))
    return Quantization(scale, zero_point)


def with_headroom(low: float, high: float, dtype: np.dtype) -> Quantization:
    """Of an activation that took values from low to high."""
    return parameters(low, high, dtype) if dtype == INT8 else parameters(HEADROOM * low, HEADROOM * high, dtype)


def representable(quantization: Quantization, dtype: np.dtype) -> Range:
    """(lowest, highest) real value that integers with these parameters stand for."""
    scale, zero_point = float(quantization.scale[0]), int(quantization.zero_point[0])
    return (np.iinfo(dtype).min - zero_point) * scale, (np.iinfo(dtype).max - zero_point) * scale


def constant_range(tensor: Tensor) -> Range:
    """(smallest, largest) element of a constant, zero included."""
    assert tensor.value is not None
    return float(tensor.value.min(initial=0)), float(tensor.value.max(initial=0))


@dataclass(eq=False)
class Group:
    """Tensors of one scale. narrowest: the smallest width among the ranges that were merged, what merging is weighed
    against.
    """

    dtype: np.dtype
    low: float = 0.0
    high: float = 0.0
    fixed: Quantization | None = None
    tensors: list[Tensor] = field(default_factory=list)
    narrowest: float = 0.0

    @property
    def width(self) -> float:
        """Of the range that the integers stand for."""
        return self.high - self.low if self.dtype == INT8 else 2 * max(-self.low, self.high)

    def include(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def quantization(self) -> Quantization:
        return self.fixed or with_headroom(self.low, self.high, self.dtype)


class ActivationScales:
    """`of(form)`: the parameters of an activation. `into(node)`: those that a node's data inputs must have, where
    they must. ranges: of all forms that nodes touch. learned: parameters that forms have as they are. carried: those
    of the operands of loops that carry integers. ties: int16 tensors that are one variable, before and after.
    """

    def __init__(
        self,
        placement: Placement,
        ranges: Mapping[Form, Range],
        learned: Learned | None = None,
        carried: Mapping[Node, Mapping[int, Quantization]] | None = None,
        ties: Sequence[tuple[Tensor, Tensor]] = (),
    ):
        self._placement = placement
        self._ranges = ranges
        self._learned = learned or Learned()
        self._carried = carried or {}
        self._groups: dict[Form, Group] = {}
        self._consumers = _consumers(placement.graph)
        joins = []
        for node in placement.graph.nodes:
            if node not in placement.rules:
                continue
            for form in self._sources(node):
                self._group(form)
            if self._add_outputs(node):
                joins.append(node)
        for group in {id(g): g for g in self._groups.values()}.values():
            group.narrowest = group.width
        for node in joins:
            self._join(node)
        for before, after in ties:
            self._tie((before, INT16), (after, INT16))
        self._final = {id(g): g.quantization() for g in self._groups.values()}

    def of(self, tensor: Tensor, dtype: np.dtype) -> Quantization:
        """Parameters of a tensor in that dtype. Those that no such node touches have those of their range."""
        group = self._groups.get((tensor, dtype))
        if group is not None:
            return self._final[id(group)]
        return self._learned.of(tensor, dtype) or with_headroom(*self._ranges[tensor, dtype], dtype)

    def learned(self, tensor: Tensor) -> tuple[np.dtype, Quantization] | None:
        """How the tensor was rounded while training."""
        return self._learned.parameters.get(tensor)

    def into(self, node: Node) -> Quantization | None:
        """What all data inputs of a node with shared scales must have, None for other nodes."""
        rule = self._placement.rules[node]
        return self.of(node.outputs[0], rule.dtype) if rule.scales is Scales.SHARED else None

    def carried(self, node: Node) -> Mapping[int, Quantization]:
        """What the operands of a loop must have, and its results do."""
        return self._carried[node]

    def _sources(self, node: Node) -> list[Form]:
        """The node's activations, in its dtype. What a loop is given becomes what its body takes."""
        if self._placement.rules[node].scales is Scales.CARRIED:
            return []
        return [(tensor, self._placement.rules[node].dtype) for _, tensor in self._placement.activations(node)]

    def _group(self, form: Form) -> Group:
        if form not in self._groups:
            group = Group(form[1], fixed=self._learned.of(*form), tensors=[form[0]])
            group.include(*self._ranges[form])
            self._groups[form] = group
        return self._groups[form]

    def _add_outputs(self, node: Node) -> bool:
        """Make the outputs' groups. True where several activations have to be brought to one scale."""
        rule = self._placement.rules[node]
        if rule.scales is Scales.FIXED:
            (output,) = node.outputs
            assert rule.fixed is not None
            low, high = representable(rule.fixed, rule.dtype)
            self._groups[output, rule.dtype] = Group(rule.dtype, low, high, rule.fixed, [output])
        elif rule.scales is Scales.FREE:
            for output in node.outputs:
                self._group((output, rule.dtype))
        elif rule.scales is Scales.SHARED:
            return self._share(node, rule.dtype)
        elif rule.scales is Scales.CARRIED:
            for slot, known in self._carried[node].items():
                output = node.outputs[slot]
                self._groups[output, rule.dtype] = Group(rule.dtype, *representable(known, rule.dtype), known, [output])
        return False

    def _share(self, node: Node, dtype: np.dtype) -> bool:
        sources = [self._groups[form] for form in self._sources(node)]
        learned = next((q for q in (self._learned.of(t, dtype) for t in node.outputs) if q is not None), None)
        if learned is not None and not (len(sources) == 1 and sources[0].fixed == learned):
            group = Group(dtype, *representable(learned, dtype), learned)
            for output in node.outputs:
                self._groups[output, dtype] = group
                group.tensors.append(output)
            return bool(sources)
        if len(sources) == 1:
            group = sources[0]
        else:
            group = Group(dtype)
            for source in sources:
                group.include(source.low, source.high)
        for _, tensor in self._placement.data(node):
            if tensor.is_constant:
                group.include(*constant_range(tensor))
        for output in node.outputs:
            self._groups[output, dtype] = group
            group.tensors.append(output)
        return len(sources) > 1

    def _join(self, node: Node) -> None:
        """Merge the groups of a node's inputs with its output's, where that is better than requantizing."""
        for form in self._sources(node):
            source, target = self._groups[form], self._groups[node.outputs[0], form[1]]
            if source is target:
                continue
            # Where nothing else reads the source, its own precision is of no use, nor where it is zeros alone.
            narrowest = target.narrowest
            if source.low < source.high and not self._only_feeds(source, node):
                narrowest = min(source.narrowest, narrowest)
            if self._worthwhile(source, target, narrowest):
                self._merge(source, target, narrowest)

    def _worthwhile(self, source: Group, target: Group, narrowest: float) -> bool:
        whole = Group(target.dtype, min(source.low, target.low), max(source.high, target.high))
        fixed = source.fixed or target.fixed
        if fixed is None:
            return whole.width <= COARSER * narrowest
        if source.fixed is not None and target.fixed is not None:
            return source.fixed == target.fixed
        lowest, highest = representable(fixed, target.dtype)
        step = float(fixed.scale[0])
        if whole.low < lowest - step or whole.high > highest + step:
            return False
        return highest - lowest <= COARSER * narrowest

    def _only_feeds(self, group: Group, node: Node) -> bool:
        """Whether nothing but `node` reads the group's tensors, moves inside of the group aside."""
        for tensor in group.tensors:
            if tensor in self._placement.graph.outputs:
                return False
            for user in self._consumers.get(tensor, ()):
                rule = self._placement.rules.get(user)
                inside = (
                    rule is not None
                    and rule.scales is Scales.SHARED
                    and self._groups[user.outputs[0], rule.dtype] is group
                )
                if user is not node and not inside:
                    return False
        return True

    def _tie(self, before: Form, after: Form) -> None:
        """One scale for a variable, but where it has two that are given: then it is requantized in each iteration."""
        target, source = self._group(before), self._group(after)
        if source is target:
            return
        given = [group.fixed for group in (source, target) if group.fixed is not None]
        free = target if source.fixed is not None else source
        if given:
            lowest, highest = representable(given[0], target.dtype)
            step = float(given[0].scale[0])
            if given[-1] != given[0] or free.low < lowest - step or free.high > highest + step:
                if target.fixed is None:
                    target.include(source.low, source.high)
                return
        self._merge(source, target, min(source.narrowest, target.narrowest))

    def _merge(self, source: Group, target: Group, narrowest: float) -> None:
        target.include(source.low, source.high)
        target.fixed = target.fixed or source.fixed
        target.narrowest = narrowest
        target.tensors += source.tensors
        for tensor in source.tensors:
            self._groups[tensor, source.dtype] = target


def _consumers(graph: Graph) -> dict[Tensor, list[Node]]:
    consumers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            if is_real(tensor) and node.op not in TYPELESS:
                consumers.setdefault(tensor, []).append(node)
    return consumers

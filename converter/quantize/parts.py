"""The graphs that are quantized: the model's, and the bodies of its loops.

The body of a recurrent layer becomes integers as a whole, and what the loop carries with it: gates and states are
int16, since a state of 8 bits would lose the sum of many small changes. In other loops (`loop_states` tells which) the
linear ops become integers, where most of the time goes and all of the weights are, and the signature stays float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from converter.quantize import loop_states
from converter.quantize.layers import Wanted
from converter.quantize.learned import Learned, lift, with_learned
from converter.quantize.observation import Observed, linear_nodes, to_observe
from converter.quantize.placement import Placement, place
from converter.quantize.rules import INT8, INT16, RULES
from converter.quantize.scales import Form
from converter.quantize.trained import add_ranges
from schema.graph import Graph, Node, Tensor, nested
from schema.quantization import Quantization

IN_LOOPS = "what loops compute besides linear ops stays float"


@dataclass(eq=False)
class Part:
    """placement: of its nodes. io_dtype: that its inputs and outputs become, None where they stay float.

    loop: the WHILE node whose body this is, where it carries integers. asked: of its nodes.
    """

    graph: Graph
    learned: Learned
    io_dtype: np.dtype | None = None
    loop: Node | None = None
    placement: Placement = field(init=False)
    asked: Wanted = field(init=False)

    def place(self, asked: Wanted) -> None:
        self.asked = asked
        self.learned = self.learned.widened(asked.int16, self.graph)
        self.placement = place(self.graph, wanted=with_learned(asked, self.learned, self.graph))

    def carry(self, loop: Node, asked: Wanted, outer: Part | None) -> str | None:
        """Become the wholly int16 body of a loop. Where that cannot be, gives why.

        outer: the graph around it, where the model is quantize-aware.
        """
        own = {tensor for tensor, (dtype, _) in self.learned.parameters.items() if dtype == INT8}
        whole = replace(asked, int16={node for node in self.graph.nodes if own.isdisjoint(node.outputs)})
        reason = loop_states.obstacle(loop, whole)
        if reason is not None:
            return reason
        self.loop, self.io_dtype = loop, INT16
        self.place(whole)
        if outer is None:
            return None
        self.learned = self.learned.and_carried(dict(self._learned_slots(loop, outer)))
        reasons = add_ranges(self.placement, self.learned, INT16, Observed()).reasons
        if not reasons:
            slots = loop_states.slots_of(loop)
            known = [(slot, self.learned.of(self.graph.inputs[slot], INT16)) for slot in slots]
            outer.learned = outer.learned.and_carried({loop.outputs[slot]: q for slot, q in known if q is not None})
        return next(iter(reasons.values()), None)

    def _learned_slots(self, loop: Node, outer: Part) -> Iterator[tuple[Tensor, Quantization]]:
        """(operand in the body, what it was rounded to), as a result of an iteration or before the loop."""
        fixed = loop_states.unchanged(loop)
        for slot in loop_states.slots_of(loop):
            tensor, result, operand = self.graph.inputs[slot], self.graph.outputs[slot], loop.inputs[slot]
            assert operand is not None
            known = self.learned.parameters.get(tensor)
            if known is not None and known[0] == INT16:
                continue
            if slot not in fixed:
                found = self.learned.moved(self.graph, result)
            else:
                readers = [node for node in self.graph.nodes if tensor in node.inputs and node.op in RULES[INT16]]
                found = outer.learned.moved(outer.graph, operand)
                for node in readers:
                    found = found or self.learned.moved(self.graph, node.outputs[0])
            if found is not None:
                yield tensor, found

    def split(self, reason: str, dtype: np.dtype) -> None:
        """Leave float what is neither linear nor was rounded while training. dtype: of the linear ops' activations."""
        asked = replace(self.asked, dtype=dtype, int16=frozenset())
        self.loop = self.io_dtype = None
        self.place(replace(asked, kept={**self._kept(dtype, reason), **asked.kept}))

    def ties(self) -> list[tuple[Tensor, Tensor]]:
        """What a loop carries: before an iteration, and after it."""
        if self.loop is None:
            return []
        changed = set(loop_states.slots_of(self.loop)) - set(loop_states.unchanged(self.loop))
        return [(self.graph.inputs[slot], self.graph.outputs[slot]) for slot in sorted(changed)]

    def to_observe(self) -> list[Form]:
        """Forms whose range only data can tell."""
        return [form for form in to_observe(self.placement, self.io_dtype) if self.learned.of(*form) is None]

    def linear(self) -> list[Node]:
        return linear_nodes(self.placement)

    def _kept(self, dtype: np.dtype, reason: str) -> Mapping[Node, str]:
        rules, rounded = RULES[dtype], self.learned.parameters
        others = (node for node in self.graph.nodes if node.op not in rules or rules[node.op].weights is None)
        return {node: reason for node in others if not any(tensor in rounded for tensor in node.outputs)}


def loops(graph: Graph) -> dict[Node, Graph]:
    """The bodies of a graph's WHILE nodes."""
    return {node: node.attributes.body for node in graph.nodes if node.op == "WHILE"}


def parts_of(graph: Graph, asked: Wanted, io_dtype: np.dtype | None) -> list[Part]:
    """The graph, then those inside of it that have something to quantize: all for which ranges were learned, or, where
    none were at all, the bodies of loops. Learned ranges are lifted out of them. asked: of all nodes.
    """
    found = [Part(inner, lift(inner)) for inner in nested(graph)]
    found[0].io_dtype = io_dtype
    trained = any(part.learned for part in found)
    around = {id(body): node for node, body in loops(graph).items()}
    chosen = [part for part in found[1:] if (part.learned if trained else id(part.graph) in around)]
    kept = dict(asked.kept)
    for part in chosen:
        part.asked = asked
        loop = around.get(id(part.graph))
        reason = IN_LOOPS if loop is None else part.carry(loop, asked, found[0] if trained else None)
        if reason is not None:
            if loop is not None:
                kept.setdefault(loop, reason)
                reason = f"{IN_LOOPS}: {reason}"
            part.split(reason, asked.dtype)
    carrying = [part.loop for part in chosen if part.loop is not None]
    int16 = asked.int16 | {node for loop in carrying for node in _products(graph, loop)}
    found[0].place(replace(asked, int16=int16, kept=kept, loops={loop: loop_states.rule_of(loop) for loop in carrying}))
    return [found[0], *(part for part in chosen if part.placement.rules)]


def _products(graph: Graph, loop: Node) -> Iterator[Node]:
    """What makes the operands that all iterations read, back to the linear op."""
    maker = {tensor: node for node in graph.nodes for tensor in node.outputs}
    for slot in loop_states.unchanged(loop):
        tensor = loop.inputs[slot]
        while tensor in maker:
            node = maker[tensor]
            rule = RULES[INT16].get(node.op)
            data = [] if rule is None else [node.inputs[i] for i in rule.data_inputs(len(node.inputs))]
            computed = [source for source in data if source is not None and not source.is_constant]
            if rule is None or len(computed) != 1:
                break
            yield node
            if rule.weights is not None:
                break
            (tensor,) = computed


def settle(parts: Sequence[Part], observed: Observed) -> None:
    """Let loops carry float32 after all where not all values were finite. Others' operands that no iteration changes
    have the range that the graph around them has seen.
    """
    outer = parts[0]
    failed = {part.loop for part in parts[1:] if part.loop is not None and _unbounded(part, observed)}
    for part in parts[1:]:
        if part.loop in failed:
            part.split(f"{IN_LOOPS}: {_unbounded(part, observed)}", INT16)
        elif part.loop is not None:
            for slot in loop_states.unchanged(part.loop):
                seen = observed.ranges.get((part.loop.inputs[slot], INT16))  # type: ignore[arg-type]
                if seen is not None:
                    observed.ranges[part.graph.inputs[slot], INT16] = seen
    if failed:
        wanted = outer.placement.wanted
        kept = dict.fromkeys(failed, "its states stay float")
        loops = {node: rule for node, rule in wanted.loops.items() if node not in failed}
        outer.placement.wanted = replace(wanted, loops=loops, kept={**kept, **wanted.kept})
        outer.placement = outer.placement.without({})


def _unbounded(part: Part, observed: Observed) -> str | None:
    return next((observed.unbounded[tensor] for tensor in part.graph.tensors() if tensor in observed.unbounded), None)

"""Which loops can carry their states as int16: those of recurrent layers, whose states nothing lets grow.

A state that a gate or a squashing function holds back stays in the range that calibration saw. A sum over the
iterations does not, nor does a counter: where a state reaches itself through additions alone, or through factors that
may be larger than 1, the loop's states stay float32.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from converter.quantize.layers import Wanted
from converter.quantize.placement import is_real, place
from converter.quantize.rules import INT16, RULES, TYPELESS, Rule, Scales
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import activation_range

Bounds = tuple[float, float]

ANYTHING: Bounds = (-np.inf, np.inf)
SQUASHED: dict[str, Bounds] = {
    **dict.fromkeys(("LOGISTIC", "SOFTMAX"), (0.0, 1.0)),
    "TANH": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}
ROUNDING = 1e-6  # by which float32 factors exceed what they are made to be
KEEPING = frozenset({"NEG", "ABS", "RELU", "LEAKY_RELU", "PRELU", "MAXIMUM", "MINIMUM"})
"""Ops whose result is at most as large as an operand. So are those that move numbers."""
GROWING = frozenset({"ADD", "SUB", "SUM"})


def slots_of(node: Node) -> tuple[int, ...]:
    """Operands of a WHILE node that are real numbers."""
    return tuple(i for i, tensor in enumerate(node.attributes.body.inputs) if is_real(tensor))


def unchanged(node: Node) -> tuple[int, ...]:
    """Those of them that all iterations read, and none changes."""
    body = node.attributes.body
    return tuple(i for i in slots_of(node) if body.outputs[i] is body.inputs[i])


def rule_of(node: Node) -> Rule:
    """Of a WHILE node that carries int16."""
    return Rule(Scales.CARRIED, slots_of(node), costly=True, dtype=INT16)


def obstacle(node: Node, wanted: Wanted) -> str | None:
    """Why the states of a WHILE node stay float. wanted: of its body's nodes."""
    condition, body = node.attributes.condition, node.attributes.body
    slots = slots_of(node)
    if not slots or not any(_is_linear(inner) for inner in body.nodes):
        return "it multiplies no weights"
    if any(body.outputs[i].is_constant for i in slots):
        return "a state is a constant"
    read = {condition.inputs[i] for i in slots}
    if any(tensor in read for inner in condition.nodes if inner.op not in TYPELESS for tensor in inner.inputs):
        return "its end depends on a state"
    reasons = place(body, wanted=wanted).reasons
    if reasons:
        inner, reason = next(iter(reasons.items()))
        return f"{inner.op} in it is float: {reason}"
    return _growth(body, slots)


def _is_linear(node: Node) -> bool:
    rule = RULES[INT16].get(node.op)
    return rule is not None and rule.weights is not None


def _growth(body: Graph, slots: tuple[int, ...]) -> str | None:
    """Whether a state can add up, or be multiplied, without end."""
    bounds = _bounds(body)
    for slot in slots:
        if body.outputs[slot] is body.inputs[slot]:
            continue
        seen: set[tuple[Tensor, bool]] = set()
        reached = [(body.inputs[slot], False)]
        while reached:
            tensor, grown = reached.pop()
            if (tensor, grown) in seen:
                continue
            seen.add((tensor, grown))
            for i in slots:
                if body.outputs[i] is tensor:
                    if i == slot and grown:
                        return f"'{tensor.name}' can grow from one iteration to the next"
                    reached.append((body.inputs[i], grown))
            reached += [(after, grown or more) for after, more in _passed_on(body, tensor, bounds)]
    return None


def _passed_on(body: Graph, tensor: Tensor, bounds: dict[Tensor, Bounds]) -> Iterator[tuple[Tensor, bool]]:
    """(result, whether it can be larger) of the ops that hold the tensor back by nothing."""
    for node in body.nodes:
        for i, read in enumerate(node.inputs):
            if read is not tensor:
                continue
            rule = RULES[INT16].get(node.op)
            if node.op in GROWING:
                yield node.outputs[0], True
            elif node.op == "MUL":
                low, high = _of(node.inputs[1 - i], bounds)
                if max(-low, high) > 1 + ROUNDING:
                    yield node.outputs[0], True
                elif node.inputs[1 - i].is_constant:  # type: ignore[union-attr]
                    yield node.outputs[0], False
            elif node.op in KEEPING or (rule is not None and rule.scales is Scales.SHARED):
                yield from ((output, False) for output in node.outputs)


def _bounds(body: Graph) -> dict[Tensor, Bounds]:
    """What values tensors can take, where ops alone tell."""
    bounds: dict[Tensor, Bounds] = {}
    for node in body.nodes:
        rule = RULES[INT16].get(node.op)
        if node.op in SQUASHED:
            bounds[node.outputs[0]] = SQUASHED[node.op]
        elif node.op in ("ADD", "SUB", "MUL"):
            (a, b), (c, d) = (_of(tensor, bounds) for tensor in node.inputs)
            with np.errstate(invalid="ignore"):
                ends = {"ADD": [a + c, b + d], "SUB": [a - d, b - c], "MUL": [a * c, a * d, b * c, b * d]}[node.op]
            both = ANYTHING if np.isnan(ends).any() else (min(ends), max(ends))
            least, most = activation_range(node.attributes)
            bounds[node.outputs[0]] = float(np.clip(both[0], least, most)), float(np.clip(both[1], least, most))
        elif node.op in ("MAXIMUM", "MINIMUM"):
            chosen = max if node.op == "MAXIMUM" else min
            low, high = zip(*(_of(tensor, bounds) for tensor in node.inputs), strict=True)
            bounds[node.outputs[0]] = chosen(low), chosen(high)
        elif rule is not None and rule.scales is Scales.SHARED:
            sources = [_of(node.inputs[i], bounds) for i in rule.data_inputs(len(node.inputs))]
            both = min(low for low, _ in sources), max(high for _, high in sources)
            bounds.update(dict.fromkeys(node.outputs, both))
    return bounds


def _of(tensor: Tensor | None, bounds: dict[Tensor, Bounds]) -> Bounds:
    if tensor is None or not is_real(tensor):
        return ANYTHING
    if tensor.is_constant:
        return float(tensor.value.min(initial=np.inf)), float(tensor.value.max(initial=-np.inf))
    return bounds.get(tensor, ANYTHING)

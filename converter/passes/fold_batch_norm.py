"""ADD(MUL(CONV(x, w, b), s), t) -> CONV(x, w * s, b * s + t), for every linear op, s and t one number for each output
channel.

That is BatchNorm in inference, a bias, and any chain of such factors and addends (SUB, DIV, NEG too). The stored
weights stay as they are: s goes into their factor per channel, so that a kernel of few distinct values keeps them.
What varies along another axis (BatchNorm(axis=1)), or what follows a result that others read too, stays.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from converter.constants import is_float, operand, per_channel
from converter.linear import LINEAR, bias_value, channels_of, foldable, scale_channels, set_operands
from converter.rewriter import Rewriter
from schema.graph import Graph, Node


@dataclass
class Affine:
    """scale * y + offset per channel, and the nodes that compute it, from the inside out."""

    scale: np.ndarray
    offset: np.ndarray
    nodes: list[Node] = field(default_factory=list)


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes(*LINEAR):
        if node.attributes.activation != "NONE" or not foldable(node) or not is_float(node.outputs[0]):
            continue
        affine = _follow(rewriter, node)
        if not affine.nodes:
            continue
        _fold(rewriter, node, affine)
        names = list(dict.fromkeys(n.name for n in affine.nodes if n.name not in ("", node.name)))
        changes.append(f"{' and '.join(names) or 'bias'} folded into {node.name or node.op}")
    rewriter.commit()
    return changes


def _follow(rewriter: Rewriter, node: Node) -> Affine:
    """The longest foldable chain behind the node."""
    channels = channels_of(node)
    affine = Affine(np.ones(channels), np.zeros(channels))
    tensor = node.outputs[0]
    while True:
        follower = rewriter.only_consumer(tensor)
        if follower is None or tensor.shape is None or follower.op not in ("ADD", "SUB", "MUL", "DIV", "NEG"):
            return affine
        step = _step(follower, affine, len(tensor.shape))
        if step is None or not (np.isfinite(step.scale).all() and np.isfinite(step.offset).all()):
            return affine
        affine = step
        if getattr(follower.attributes, "activation", "NONE") != "NONE":
            return affine
        tensor = follower.outputs[0]


def _step(node: Node, before: Affine, rank: int) -> Affine | None:
    """The chain with this node added to it."""
    scale, offset, nodes = before.scale, before.offset, [*before.nodes, node]
    if node.op == "NEG":
        return Affine(-scale, -offset, nodes)
    pair = operand(node)
    if pair is None:
        return None
    x, value = pair
    number = per_channel(value.astype(np.float64), rank, len(scale))
    if number is None:
        return None
    if node.op == "ADD":
        return Affine(scale, offset + number, nodes)
    if node.op == "SUB":
        first = x is node.inputs[0]
        return Affine(scale, offset - number, nodes) if first else Affine(-scale, number - offset, nodes)
    if node.op == "MUL":
        return Affine(scale * number, offset * number, nodes)
    if x is not node.inputs[0] or not number.all():
        return None
    return Affine(scale / number, offset / number, nodes)


def _fold(rewriter: Rewriter, node: Node, affine: Affine) -> None:
    operands, activation = LINEAR[node.op], affine.nodes[-1].attributes
    weights = node.inputs[operands.weights]
    assert weights is not None
    for follower in affine.nodes:
        rewriter.absorb(node, follower)
    scaled = None if (affine.scale == 1.0).all() else scale_channels(weights, operands.out_axis, affine.scale)
    set_operands(rewriter, node, scaled, bias_value(node) * affine.scale + affine.offset)
    if getattr(activation, "activation", "NONE") != "NONE":
        bounds = (activation.activation, activation.clamp_min, activation.clamp_max)
        names = ("activation", "clamp_min", "clamp_max")
        rewriter.rewrite(node, attributes=dataclasses.replace(node.attributes, **dict(zip(names, bounds, strict=True))))

"""ADD(CONV_2D(x), y) -> CONV_2D(x, residual y): nodes of a plan that one kernel computes together.

Unlike a pass of the converter this changes no file: which kernels can do it is this machine's affair.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from schema.graph import Node, Tensor
from schema.inference import Inference

RESIDUAL = 3
"""Which input of a fused convolution is the residual."""

LANES = 16


def has_residual(node: Node) -> bool:
    """Whether a node is a convolution with an addition in it."""
    return node.op == "CONV_2D" and len(node.inputs) > RESIDUAL


def fuse(nodes: Sequence[Node], known: Inference, outputs: Iterable[Tensor | None]) -> list[Node]:
    """The nodes in their order, each fused pair in the place of its addition. outputs: tensors that are read later."""
    uses = Counter([t for node in nodes for t in node.inputs] + list(outputs))
    place = {tensor: i for i, node in enumerate(nodes) for tensor in node.outputs}
    makers = {tensor: node for node in nodes for tensor in node.outputs}
    result: list[Node | None] = list(nodes)
    for i, node in enumerate(nodes):
        if node.op != "ADD":
            continue
        for tensor, other in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
            maker = makers.get(tensor)
            if maker is None or tensor is None or other is None or uses[tensor] != 1:
                continue
            if result[place[tensor]] is maker and _fits(maker, node, other, known):
                result[place[tensor]] = None
                result[i] = _fused(maker, node, other)
                break
    return [node for node in result if node is not None]


def _fits(convolution: Node, addition: Node, other: Tensor, known: Inference) -> bool:
    if convolution.op != "CONV_2D" or convolution.attributes.activation != "NONE":
        return False
    kinds = [known.types[t] for t in (convolution.inputs[0], *convolution.outputs, other, *addition.outputs) if t]
    _, made, added, result = kinds
    shape = result.shape or ()
    if any(kind.dtype != np.float32 for kind in kinds) or not made.shape == added.shape == shape or 0 in shape:
        return False
    constants = [known.value(t) for t in convolution.inputs[1:] if t is not None]
    return shape[-1] % LANES == 0 and all(value is not None for value in constants) and known.value(other) is None


def _fused(convolution: Node, addition: Node, other: Tensor) -> Node:
    inputs = [*convolution.inputs, *[None] * (RESIDUAL - len(convolution.inputs)), other]
    fields = ("activation", "clamp_min", "clamp_max")
    attributes = dataclasses.replace(
        convolution.attributes, **{field: getattr(addition.attributes, field) for field in fields}
    )
    return Node("CONV_2D", inputs, addition.outputs, attributes, convolution.name)

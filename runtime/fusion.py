"""ADD(CONV_2D(x), y) -> CONV_2D(x, residual y); CONV_2D(DEPTHWISE_CONV_2D(x)) -> CONV_2D(x) of 1 x 1, and
CONV_2D(DEPTHWISE_CONV_2D(CONV_2D(x))) -> CONV_2D(x) where what the first gives is large: nodes of a plan that one
kernel computes together, so that what is between them need not go through memory.

Unlike a pass of the converter this changes no file: which kernels can do it is this machine's affair.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from runtime.chains import Chain
from runtime.kernels.table import find_kernel
from schema import costs
from schema.graph import Node, Tensor
from schema.inference import Inference

RESIDUAL = 3
"""Which input of a fused convolution is the residual."""

LANES = 16
LARGE = 512 * 1024  # bytes of a tensor that would leave the cache before it is read
LARGEST_LINE = 64 * 1024  # bytes: some lines stay in the cache
MOST_DEPTHWISE = 2  # in one kernel: each makes workers compute more lines of their neighbours' once more


@dataclass(eq=False)
class Fused(Node):
    """A convolution that computes what its first input is made from: its inputs[0] is that of `before`."""

    before: Node | None = None


def members(node: Node) -> list[str]:
    """The ops that a node of a plan computes, in their order."""
    if isinstance(node, Chain):
        return [stage.node.op for stage in node.stages]
    return [*(n.op for n in before(node)), node.op, *["ADD"] * has_residual(node)]


def before(node: Node) -> list[Node]:
    """The nodes that are computed within this one, from the first on."""
    inner = node.before if isinstance(node, Fused) else None
    return [] if inner is None else [*before(inner), inner]


def has_residual(node: Node) -> bool:
    """Whether a node is a convolution with an addition in it."""
    return node.op == "CONV_2D" and len(node.inputs) > RESIDUAL


def reads(node: Node) -> list[Tensor | None]:
    """What a node of a plan takes from memory: of fused nodes, not what is between them."""
    return [*node.inputs, *(t for inner in before(node) for t in inner.inputs)]


def macs(node: Node, known: Inference) -> int:
    """Multiply-accumulates of all that a node of a plan computes."""
    inputs, count = list(node.inputs), 0
    if isinstance(node, Fused) and node.before is not None:
        inputs[0], count = node.before.outputs[0], macs(node.before, known)
    return count + costs.macs(Node(node.op, inputs, node.outputs, node.attributes), known.types)


def fuse(nodes: Sequence[Node], known: Inference, outputs: Iterable[Tensor | None]) -> list[Node]:
    """The nodes in their order, those fused in the place of the last. outputs: tensors that are read later."""
    later = list(outputs)
    return _depthwise(_residuals(nodes, known, later), known, later)


def _depthwise(nodes: Sequence[Node], known: Inference, outputs: Sequence[Tensor | None]) -> list[Node]:
    uses = Counter([t for node in nodes for t in node.inputs] + list(outputs))
    makers: dict[Tensor, Node] = {}
    taken: set[Node] = set()

    def only_maker(node: Node) -> Node | None:
        """The node that makes a node's first input, if that is used nowhere else."""
        made = node.inputs[0] if node.inputs else None
        return makers.get(made) if made is not None and uses[made] == 1 else None

    result = []
    for node in nodes:
        inner = only_maker(node)
        if inner is not None and _follows(inner, node, known):
            taken.add(inner)
            first = only_maker(inner)
            if first is not None and _makes_lines(first, known):
                taken.add(first)
                inner = _within(first, inner)
            node = _within(inner, node)
        result.append(node)
        makers |= dict.fromkeys(node.outputs, node)
    return [node for node in result if node not in taken]


def _within(before: Node, node: Node) -> Node:
    inputs = [before.inputs[0], *node.inputs[1:]]
    return Fused(node.op, inputs, node.outputs, node.attributes, node.name, before=before)


def _makes_lines(node: Node, known: Inference) -> bool:
    """Whether a convolution can make its lines when a depthwise one needs them, and that is worth it."""
    if node.op != "CONV_2D" or has_residual(node):
        return False
    if sum(n.op == "DEPTHWISE_CONV_2D" for n in before(node)) >= MOST_DEPTHWISE:
        return False
    made, weights = known.types[node.outputs[0]], node.inputs[1]
    x = known.types[before(node)[-1].outputs[0] if before(node) else node.inputs[0]]  # type: ignore[index]
    if weights is None or any(t is not None and not known.is_known(t) for t in node.inputs[1:]):
        return False
    if x.dtype != np.float32 or (known.types[weights].shape or ())[3] != (x.shape or ())[-1]:
        return False
    _, height, width, channels = (dim or 0 for dim in made.shape or ())
    line_bytes = 4 * width * channels
    return height * line_bytes >= LARGE and line_bytes <= LARGEST_LINE


def _follows(before: Node, node: Node, known: Inference) -> bool:
    """Whether a 1 x 1 convolution can make the rows that it needs of a depthwise one before it."""
    if before.op != "DEPTHWISE_CONV_2D" or node.op != "CONV_2D" or find_kernel("depthwise_3x3", "float32") is None:
        return False
    x, made, out = (known.types[t] for t in (before.inputs[0], before.outputs[0], node.outputs[0]) if t is not None)
    constants = [t for n in (before, node) for t in n.inputs[1:RESIDUAL] if t is not None]
    if made.dtype != np.float32 or out.dtype != np.float32 or not all(map(known.is_known, constants)):
        return False
    if made.shape is None or out.shape is None or 0 in out.shape or made.shape[:-1] != out.shape[:-1]:
        return False
    taps, kernel = (known.types[t].shape or () for t in (before.inputs[1], node.inputs[1]) if t is not None)
    assert x.shape is not None
    narrow = taps[1:3] == (3, 3) and before.attributes.dilation_w == 1 and before.attributes.stride_w <= 2
    return narrow and x.shape[-1] == made.shape[-1] == kernel[3] and kernel[1:3] == (1, 1)


def _residuals(nodes: Sequence[Node], known: Inference, outputs: Sequence[Tensor | None]) -> list[Node]:
    uses = Counter([t for node in nodes for t in node.inputs] + list(outputs))
    place = {tensor: i for i, node in enumerate(nodes) for tensor in node.outputs}
    makers = {tensor: node for node in nodes for tensor in node.outputs}
    result: list[Node | None] = list(nodes)
    for i, node in enumerate(nodes):
        if node.op != "ADD":
            continue
        for tensor, other in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
            if tensor is None or other is None or uses[tensor] != 1:
                continue
            maker = makers.get(tensor)
            if maker is None:
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
    constants = [t for t in convolution.inputs[1:] if t is not None]
    return (shape[-1] or 0) % LANES == 0 and all(map(known.is_known, constants)) and not known.is_known(other)


def _fused(convolution: Node, addition: Node, other: Tensor) -> Node:
    inputs = [*convolution.inputs, *[None] * (RESIDUAL - len(convolution.inputs)), other]
    fields = ("activation", "clamp_min", "clamp_max")
    attributes = dataclasses.replace(
        convolution.attributes, **{field: getattr(addition.attributes, field) for field in fields}
    )
    return Node("CONV_2D", inputs, addition.outputs, attributes, convolution.name)

"""Channels that one linear layer makes and others read, with nothing between that mixes them or cares about their size.

Positive factors can be moved along such a path: f(s x) = s f(x) for every node on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from converter.constants import has_codebook
from converter.linear import LINEAR, channels_of, foldable
from converter.quantize.layers import layer_name
from converter.quantize.rules import TYPELESS
from converter.rewriter import Rewriter
from schema.graph import Graph, Node, Tensor

RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
POOLS = ("MAX_POOL_2D", "AVERAGE_POOL_2D", "MAX_POOL_3D", "AVERAGE_POOL_3D")
PADS = ("PAD", "MIRROR_PAD")
ALWAYS = (
    *("RELU", "LEAKY_RELU", "ABS", "NEG", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    *("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
)


@dataclass(frozen=True, eq=False)
class Path:
    """From a linear node to all that read its channels.

    readers: each gets the channels in order, once or several times one after another. nodes: between them. clip: where
    an activation right behind the writer cuts off large numbers, infinite where none does.
    """

    writer: Node
    readers: tuple[Node, ...]
    nodes: tuple[Node, ...]
    clip: float

    @property
    def channels(self) -> int:
        return channels_of(self.writer)

    def __str__(self) -> str:
        return f"{layer_name(self.writer)} -> {', '.join(layer_name(node) for node in self.readers)}"


def paths(graph: Graph, usable: Callable[[Node], bool]) -> Iterator[Path]:
    """Paths of which every node is usable. Shapes have to be annotated."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.op in LINEAR and usable(node):
            path = _Walk(rewriter, usable, node).path()
            if path is not None:
                yield path


class _Blocked(Exception):
    """Factors cannot pass."""


class _Walk:
    def __init__(self, rewriter: Rewriter, usable: Callable[[Node], bool], writer: Node):
        self._rewriter = rewriter
        self._usable = usable
        self._writer = writer
        self._readers: dict[Node, None] = {}
        self._between: dict[Node, None] = {}

    def path(self) -> Path | None:
        writer = self._writer
        output = writer.outputs[0]
        if not self._own(writer) or not output.shape or output.shape[-1] != channels_of(writer):
            return None
        try:
            self._clip = _clip(writer)
            self._follow(output)
        except _Blocked:
            return None
        return Path(writer, tuple(self._readers), tuple(self._between), self._clip) if self._readers else None

    def _own(self, node: Node) -> bool:
        """Whether weights and bias may be changed, and no other node has the weights."""
        if not foldable(node):
            return False
        weights = node.inputs[LINEAR[node.op].weights]
        return len(self._rewriter.consumers(weights)) == 1

    def _follow(self, tensor: Tensor) -> None:
        consumers = self._rewriter.consumers(tensor)
        if self._rewriter.is_output(tensor) or not consumers:
            raise _Blocked
        for node in consumers:
            if node.op in TYPELESS:
                continue
            if not self._usable(node):
                raise _Blocked
            if node.op in LINEAR:
                self._end(node, tensor)
            elif node not in self._between:
                self._pass(node, tensor)
                self._between[node] = None
                self._follow(node.outputs[0])

    def _end(self, node: Node, tensor: Tensor) -> None:
        operands = LINEAR[node.op]
        weights = node.inputs[operands.weights]
        if [t is tensor for t in node.inputs].index(True) != operands.x or not self._own(node):
            raise _Blocked
        # A codebook survives factors of output channels, which a depthwise node's are, but not of input channels.
        if operands.in_axis is not None and has_codebook(weights.constant):
            raise _Blocked
        depth = weights.shape[operands.in_axis] if node.op == "FULLY_CONNECTED" else tensor.shape[-1]
        self._require(depth is not None and depth % self._channels == 0)
        self._readers[node] = None

    def _pass(self, node: Node, tensor: Tensor) -> None:
        """Raise _Blocked where a factor for each channel does not pass this node."""
        before, after = tensor.shape, node.outputs[0].shape
        self._require(bool(before and after) and node.inputs[0] is tensor)
        if node.op in RESHAPES:
            self._require(after[-1] is not None and before[-1] is not None and after[-1] % self._channels == 0)
        elif node.op in REDUCTIONS:
            axes = node.inputs[1].value
            self._require(axes is not None and not (axes.reshape(-1) % len(before) == len(before) - 1).any())
        elif node.op in POOLS:
            self._require(_clip(node) == np.inf)
        elif node.op in PADS:
            amounts = node.inputs[1].value
            self._require(amounts is not None and not amounts[-1].any())
        elif node.op == "PRELU":
            self._require(node.inputs[1].is_constant)
        elif node.op in ("RELU6", "CLAMP"):
            self._require(tensor is self._writer.outputs[0])
            self._clip = min(self._clip, _clip(node))
        else:
            self._require(node.op in ALWAYS)

    @property
    def _channels(self) -> int:
        return channels_of(self._writer)

    @staticmethod
    def _require(passes: bool) -> None:
        if not passes:
            raise _Blocked


def _clip(node: Node) -> float:
    """Where the node cuts off large numbers. Raises _Blocked for one that does so below, but for at zero."""
    attributes = node.attributes
    if node.op == "CLAMP":
        low, high = attributes.min, attributes.max
    elif node.op == "RELU6":
        low, high = 0.0, 6.0
    elif not hasattr(attributes, "activation"):  # poolings of volumes
        low, high = -np.inf, np.inf
    else:
        bounds = {
            "NONE": (-np.inf, np.inf),
            "RELU": (0.0, np.inf),
            "RELU6": (0.0, 6.0),
            "CLAMP": (attributes.clamp_min, attributes.clamp_max),
        }
        low, high = bounds.get(attributes.activation, (-1.0, 1.0))
    if low not in (0.0, -np.inf) or high <= 0:
        raise _Blocked
    return float(high)

"""One graph that runs a float model and its quantized form side by side, with taps where they are compared.

Each node of the quantized form is there twice: in its place, where it gets the errors of all nodes before it, and by
itself, where it gets what its float node gets, quantized. The first tells the accumulated error, the second its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from converter.quantize.layers import layer_name
from converter.quantize.matching import matched
from converter.rewriter import copy
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import DTypeAttributes

FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Tap:
    """Where a node is compared: float tensors, all float32. own is empty for a node that is not quantized.

    layer: the source's name, of a node or of a quantized input of the graph. dtype, step: of the quantized output.
    moves: whether all that is quantized has one scale, so that integers are moved or compared as they are.
    """

    layer: str
    op: str
    real: tuple[Tensor, ...]
    accumulated: tuple[Tensor, ...]
    own: tuple[Tensor, ...] = ()
    dtype: np.dtype | None = None
    step: float | None = None
    moves: bool = False

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.real, *self.accumulated, *self.own)


@dataclass(frozen=True)
class Probed:
    """The graph has the float graph's inputs; its outputs are the taps' tensors, in no order that matters."""

    graph: Graph
    taps: list[Tap]


def probe(real: Graph, quantized: Graph) -> Probed:
    """Both graphs in one. quantized: what `converter.quantize` makes of the float graph, with float32 inputs."""
    return _Probes(real, quantized).run()


class _Probes:
    def __init__(self, real: Graph, quantized: Graph):
        self._real = real
        self._quantized = quantized
        self._nodes = list(real.nodes)
        self._twins: dict[Tensor, Tensor] = {t: t for t in quantized.inputs}
        self._seen: dict[tuple, Tensor] = {}  # float tensors, quantized; quantized ones, as floats

    def run(self) -> Probed:
        for node in self._quantized.nodes:
            inputs = [self._twin(tensor) for tensor in node.inputs]
            self._nodes.append(Node(node.op, inputs, [self._twin(t) for t in node.outputs], node.attributes, node.name))
        taps = [*self._inputs()]
        for node, quantized in matched(self._real, self._quantized):
            tap = self._tap(node, quantized)
            if tap is not None:
                taps.append(tap)
        tensors = list(dict.fromkeys(tensor for tap in taps for tensor in tap.tensors))
        names = [str(i) for i in range(len(tensors))]
        return Probed(Graph(self._nodes, self._real.inputs, self._real.input_names, tensors, names), taps)

    def _inputs(self) -> Iterator[Tap]:
        """The graph's inputs where they are quantized."""
        for name, tensor in zip(self._real.input_names, self._real.inputs, strict=True):
            for node in self._quantized.nodes:
                if node.op == "QUANTIZE" and node.inputs[0] is tensor and not node.name:
                    found = self._as_float(self._twin(node.outputs[0]))
                    yield _tap(name, node, (tensor,), (found,), (found,), node.outputs[0])
                    break

    def _tap(self, node: Node, quantized: Node) -> Tap | None:
        pairs = [
            (float_tensor, tensor)
            for float_tensor, tensor in zip(node.outputs, quantized.outputs, strict=True)
            if float_tensor.dtype == FLOAT32
        ]
        if not pairs:
            return None
        real = tuple(tensor for tensor, _ in pairs)
        accumulated = tuple(self._as_float(self._twin(tensor)) for _, tensor in pairs)
        first = pairs[0][1]
        own = self._alone(node, quantized) if first.quantization is not None else ()
        return _tap(layer_name(node), quantized, real, accumulated, own, first)

    def _alone(self, node: Node, quantized: Node) -> tuple[Tensor, ...]:
        """The quantized node once more, fed with the float graph's tensors."""
        inputs = [
            tensor if tensor is None or tensor.is_constant else self._as_quantized(source, tensor)
            for source, tensor in zip([*node.inputs, *[None] * len(quantized.inputs)], quantized.inputs, strict=False)
        ]
        outputs = [Tensor(t.name, t.dtype, t.shape, t.quantization) for t in quantized.outputs]
        self._nodes.append(Node(quantized.op, inputs, outputs, quantized.attributes, quantized.name))
        return tuple(self._as_float(t) for t in outputs if t.quantization is not None)

    def _as_quantized(self, source: Tensor, wanted: Tensor) -> Tensor:
        if wanted.quantization is None:
            return source
        key = (source, wanted.dtype, float(wanted.quantization.scale[0]), int(wanted.quantization.zero_point[0]))
        if key not in self._seen:
            self._seen[key] = Tensor(source.name, wanted.dtype, source.shape, wanted.quantization)
            self._nodes.append(Node("QUANTIZE", [source], [self._seen[key]], DTypeAttributes(wanted.dtype)))
        return self._seen[key]

    def _as_float(self, tensor: Tensor) -> Tensor:
        if tensor.quantization is None:
            return tensor
        if (tensor,) not in self._seen:
            self._seen[tensor,] = Tensor(tensor.name, FLOAT32, tensor.shape)
            self._nodes.append(Node("DEQUANTIZE", [tensor], [self._seen[tensor,]]))
        return self._seen[tensor,]

    def _twin(self, tensor: Tensor | None) -> Tensor | None:
        """The quantized graph's tensor, apart from the float graph's; constants are shared."""
        if tensor is None or tensor.is_constant:
            return tensor
        if tensor not in self._twins:
            self._twins[tensor] = Tensor(tensor.name, tensor.dtype, tensor.shape, tensor.quantization)
        return self._twins[tensor]


def _tap(
    layer: str,
    node: Node,
    real: tuple[Tensor, ...],
    accumulated: tuple[Tensor, ...],
    own: tuple[Tensor, ...],
    output: Tensor,
) -> Tap:
    if output.quantization is None:
        return Tap(layer, node.op, real, accumulated)
    given = [t.quantization for t in node.inputs if t is not None and not t.is_constant and t.quantization is not None]
    moves = bool(given) and all(quantization == output.quantization for quantization in given)
    return Tap(layer, node.op, real, accumulated, own, output.dtype, float(output.quantization.scale[0]), moves)


def isolated(real: Graph, quantized: Graph, layer: str) -> Graph:
    """The float graph with only the nodes of one layer quantized."""
    graph = copy(real)
    nodes = []
    for node, twin in matched(real, quantized):
        if layer_name(node) != layer or all(t.quantization is None for t in twin.outputs):
            nodes.append(node)
            continue
        inputs = list(twin.inputs)
        for i, (source, wanted) in enumerate(zip(node.inputs, twin.inputs, strict=False)):
            if wanted is None or wanted.is_constant:
                continue
            inputs[i] = source
            if wanted.quantization is not None:
                inputs[i] = Tensor(source.name, wanted.dtype, source.shape, wanted.quantization)
                nodes.append(Node("QUANTIZE", [source], [inputs[i]], DTypeAttributes(wanted.dtype)))
        outputs = [
            t if t.quantization is None else Tensor(t.name, t.dtype, t.shape, t.quantization) for t in twin.outputs
        ]
        nodes.append(Node(twin.op, inputs, outputs, twin.attributes, twin.name))
        nodes += [
            Node("DEQUANTIZE", [inner], [outer])
            for inner, outer in zip(outputs, node.outputs, strict=True)
            if inner is not outer
        ]
    graph.nodes = nodes
    return graph


def in_parts(taps: Sequence[Tap], size: dict[Tensor, int], limit: int) -> Iterator[list[Tap]]:
    """The taps in groups whose tensors take at most `limit` bytes together. size: of each tensor, in bytes."""
    part: list[Tap] = []
    held = 0
    for tap in taps:
        needed = sum(size[tensor] for tensor in tap.tensors)
        if part and held + needed > limit:
            yield part
            part, held = [], 0
        part.append(tap)
        held += needed
    if part:
        yield part

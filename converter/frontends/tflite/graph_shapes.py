"""Shapes of the operands of branches and loops. A file's subgraphs declare what the operands of one run were; here they
are what holds of every run: the shapes of the node's operands, and what stays the same through a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from schema.errors import UnsupportedError, XnnError
from schema.graph import Graph, Node, Shape, Tensor
from schema.inference import CONTROL_FLOW, Inference, infer_node, place
from schema.ops.calls import widened

MOST_NODES = 200_000
"""Nodes looked at: a loop is looked at again, with all loops inside of it, for shapes that do not last."""


def settle(graph: Graph) -> None:
    """Set the shapes of the operands of all graphs inside of this one, and of its own state."""
    _Settling().state(graph)


class _Settling:
    def __init__(self) -> None:
        self.nodes = 0

    def state(self, graph: Graph) -> None:
        count = len(graph.state)
        if not count:
            self.graph(graph)
            return
        before = graph.inputs[-count:]
        self._repeat(before, [tensor.shape for tensor in graph.state], lambda: self.graph(graph)[-count:])

    def graph(self, graph: Graph) -> list[Shape | None]:
        """The shapes of the outputs."""
        known = Inference()
        for tensor in graph.inputs:
            known.types[tensor] = tensor.type
        for node in graph.nodes:
            self.nodes += 1
            if self.nodes > MOST_NODES:
                raise UnsupportedError("loops inside of loops change shapes in too many ways")
            try:
                if node.op in CONTROL_FLOW:
                    self._node(node, known)
                infer_node(node, known)
            except XnnError as error:
                raise place(node, error) from None
        return [known.types.get(tensor, tensor.type).shape for tensor in graph.outputs]

    def _node(self, node: Node, known: Inference) -> None:
        shapes = [known.types.get(t, t.type).shape for t in node.inputs if t is not None]
        if node.op == "IF":
            for branch in node.subgraphs.values():
                _set(branch.inputs, shapes[1:])
                self.graph(branch)
            return
        condition, body = node.attributes.condition, node.attributes.body
        self._repeat(body.inputs, shapes, lambda: self.graph(body))
        _set(condition.inputs, [tensor.shape for tensor in body.inputs])
        self.graph(condition)

    def _repeat(self, operands: Sequence[Tensor], shapes: list[Shape | None], once) -> None:
        """Widen the shapes until what comes out is what goes in."""
        for last in (False, True, True, True):
            _set(operands, shapes)
            following = [widened(a, b) for a, b in zip(shapes, once(), strict=True)]
            if following == shapes:
                return
            if last:  # one dimension changes others in each turn
                following = [
                    a if a == b else None if b is None else (None,) * len(b)
                    for a, b in zip(shapes, following, strict=True)
                ]
            shapes = following
        _set(operands, [None] * len(shapes))
        once()


def _set(tensors: Sequence[Tensor], shapes: Sequence[Shape | None]) -> None:
    for tensor, shape in zip(tensors, shapes, strict=False):
        tensor.shape = shape

"""Editing a graph: who makes a tensor, who uses it, and changes that keep nodes in an order in which they can run.

A pass builds one `Rewriter`, edits through it, and commits. Building and committing are linear in the nodes, every
edit is constant, so a pass over a thousand nodes takes a few milliseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from schema import ops
from schema.graph import Constant, Graph, Node, Tensor, types_of
from schema.inference import FOLD_LIMIT
from schema.quantization import Quantization


class Rewriter:
    """Edits of one graph. The maps are always up to date; `graph.nodes` is after `commit()`.

    Nodes whose results nobody uses any more are removed at once, and with them what only they used. Tensors that the
    signature names are never removed, and `graph.input_names` and `graph.output_names` are never touched.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self._producer: dict[Tensor, Node] = {}
        self._consumers: dict[Tensor, dict[Node, None]] = {}
        self._outputs = set(graph.outputs)
        self._before: dict[Node, list[Node]] = {}
        self._removed: set[Node] = set()
        for node in graph.nodes:
            self._register(node)

    # ---- looking ----

    def nodes(self, *names: str) -> Iterator[Node]:
        """The nodes of these ops (of all, without names) that are there when their turn comes, without added ones."""
        for node in list(self.graph.nodes):
            if node not in self._removed and (not names or node.op in names):
                yield node

    def producer(self, tensor: Tensor | None, *names: str) -> Node | None:
        """The node that computes the tensor, if its op is one of `names` (any op, without names)."""
        node = None if tensor is None else self._producer.get(tensor)
        return node if node is not None and (not names or node.op in names) else None

    def consumers(self, tensor: Tensor) -> list[Node]:
        """The nodes that read the tensor, each once, in no particular order."""
        return list(self._consumers.get(tensor, ()))

    def is_output(self, tensor: Tensor) -> bool:
        return tensor in self._outputs

    def only_consumer(self, tensor: Tensor) -> Node | None:
        """The one node that reads the tensor; None where there are several, none, or it is an output of the graph."""
        consumers = self._consumers.get(tensor, {})
        return next(iter(consumers)) if len(consumers) == 1 and tensor not in self._outputs else None

    # ---- editing ----

    def add(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        attributes: Any = None,
        *,
        before: Node,
        name: str | None = None,
        quantization: Quantization | None = None,
    ) -> Tensor:
        """A new node with one output, placed before another; returns its output, with the inferred type.

        name: the layer's, by default that of `before`. quantization: the output's.
        """
        name = before.name if name is None else name
        values = [None if tensor is None or not _is_small(tensor) else tensor.value for tensor in inputs]
        (kind,) = ops.get(op).infer(attributes, types_of(inputs), values)
        output = Tensor(f"{name}/{op.lower()}", kind.dtype, kind.shape, quantization)
        node = Node(op, list(inputs), [output], attributes, name)
        self._before.setdefault(before, []).append(node)
        self._register(node)
        return output

    def rewrite(
        self,
        node: Node,
        op: str | None = None,
        inputs: Sequence[Tensor | None] | None = None,
        attributes: Any = ...,
        name: str | None = None,
    ) -> None:
        """Change what a node does, in its place and with the same outputs. What is not given stays."""
        node.op = node.op if op is None else op
        node.name = node.name if name is None else name
        node.attributes = node.attributes if attributes is ... else attributes
        if inputs is not None:
            before, node.inputs = node.inputs, list(inputs)
            for tensor in node.inputs:
                if tensor is not None:
                    self._consumers.setdefault(tensor, {})[node] = None
            self._release(node, (tensor for tensor in before if tensor not in node.inputs))

    def absorb(self, node: Node, follower: Node) -> None:
        """`node` takes over the output of `follower`, the only reader of its own output, and `follower` goes."""
        (inner,), (outer,) = node.outputs, follower.outputs
        assert self.only_consumer(inner) is follower
        node.outputs = [outer]
        del self._producer[inner]
        self._producer[outer] = node
        self._removed.add(follower)
        self._release(follower, follower.inputs)

    def bypass(self, node: Node, source: Tensor) -> bool:
        """Let everyone read `source`, which is computed before `node`, instead of `node`'s only output; remove `node`.

        False, and nothing done, where that would make an input, a constant or a second output an output of the graph.
        """
        (output,) = node.outputs
        if self.is_output(output):
            producer = self._producer.get(source)
            if producer is None or self.is_output(source):
                return False
            # The producer writes the output itself, so that its name and identity stay.
            self._removed.add(node)
            self._producer[output] = producer
            del self._producer[source]
            producer.outputs = [output if tensor is source else tensor for tensor in producer.outputs]
            self._redirect(source, output)
            self._release(node, node.inputs)
            return True
        self._redirect(output, source)
        self.remove(node)
        return True

    def replace_uses(self, old: Tensor, new: Tensor) -> None:
        """Let every node that reads `old` read `new`, which is computed before each of them. Graph outputs stay."""
        producer = self._producer.get(old)
        self._redirect(old, new)
        self._drop_if_dead(producer)

    def replace(self, node: Node, nodes: Sequence[Node]) -> None:
        """Let other nodes compute all outputs of a node, in its place."""
        self._before.setdefault(node, []).extend(nodes)
        for new in nodes:
            self._register(new)
        self._removed.add(node)
        self._release(node, node.inputs)
        for new in reversed(nodes):
            self._drop_if_dead(new)

    def make_constant(self, node: Node, arrays: Sequence[np.ndarray]) -> None:
        """Turn the outputs of a node, none of them an output of the graph, into constants and remove the node."""
        for tensor, array in zip(node.outputs, arrays, strict=True):
            assert not self.is_output(tensor)
            tensor.set_constant(Constant(np.asarray(array, tensor.dtype)))
        self.remove(node)

    def remove(self, node: Node) -> None:
        """Remove a node that nobody reads, and what only it read."""
        self._removed.add(node)
        for tensor in node.outputs:
            self._producer.pop(tensor, None)
        self._release(node, node.inputs)

    def commit(self) -> None:
        """Write the edits to `graph.nodes`."""
        if not self._before and not self._removed:
            return
        nodes: list[Node] = []
        for node in self.graph.nodes:
            self._place(node, nodes)
        self.graph.nodes = nodes
        self._before, self._removed = {}, set()

    # ---- inside ----

    def _register(self, node: Node) -> None:
        for tensor in node.outputs:
            self._producer[tensor] = node
        for tensor in node.inputs:
            if tensor is not None:
                self._consumers.setdefault(tensor, {})[node] = None

    def _redirect(self, old: Tensor, new: Tensor) -> None:
        readers = self._consumers.pop(old, {})
        for reader in readers:
            reader.inputs = [new if tensor is old else tensor for tensor in reader.inputs]
        self._consumers.setdefault(new, {}).update(readers)

    def _release(self, node: Node, tensors: Iterable[Tensor | None]) -> None:
        for tensor in tensors:
            if tensor is not None and self._consumers.get(tensor, {}).pop(node, 0) is None:
                self._drop_if_dead(self._producer.get(tensor))

    def _drop_if_dead(self, node: Node | None) -> None:
        if node is None or node in self._removed:
            return
        if not any(self._consumers.get(tensor) or tensor in self._outputs for tensor in node.outputs):
            self.remove(node)

    def _place(self, node: Node, nodes: list[Node]) -> None:
        for added in self._before.get(node, ()):
            self._place(added, nodes)
        if node not in self._removed:
            nodes.append(node)


def copy(graph: Graph) -> Graph:
    """The graph with nodes of its own, so that rewriting it leaves the original as it is. Tensors are shared."""
    nodes = [dataclasses.replace(node, inputs=list(node.inputs), outputs=list(node.outputs)) for node in graph.nodes]
    return dataclasses.replace(
        graph,
        nodes=nodes,
        inputs=list(graph.inputs),
        input_names=list(graph.input_names),
        outputs=list(graph.outputs),
        output_names=list(graph.output_names),
        state=list(graph.state),
    )


def _is_small(tensor: Tensor) -> bool:
    """Shapes, axes and paddings are; weights are not: no op's type depends on their values."""
    return tensor.constant is not None and np.size(tensor.constant.values) <= FOLD_LIMIT


def layer(node: Node) -> str:
    """How reports call a node: the layer's name in the source model, or the op where it has none."""
    return node.name or node.op

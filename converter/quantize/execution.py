"""Running a float graph while it is being converted, to see tensors inside of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import runtime
from converter.quantize.options import REQUANTIZATION
from schema import limits
from schema.graph import Graph, Model, Node, Tensor
from schema.ops.calls import truth


class Execution:
    """The part of a graph that computes these tensors, on the engine."""

    def __init__(self, graph: Graph, tensors: Sequence[Tensor]):
        self.tensors = list(tensors)
        needed = set(tensors)
        nodes = []
        for node in reversed(graph.nodes):
            if any(tensor in needed for tensor in node.outputs):
                nodes.append(node)
                needed.update(tensor for tensor in node.inputs if tensor is not None)
        self._names = [str(i) for i in range(len(self.tensors))]
        part = Graph(nodes[::-1], graph.inputs, graph.input_names, self.tensors, self._names, graph.name)
        self._model = runtime.Model(Model([part], REQUANTIZATION))

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The tensors' values for these inputs."""
        found = self._model(*arrays)
        return [found] if isinstance(found, np.ndarray) else [found[name] for name in self._names]


class LoopExecution:
    """The tensors inside of a WHILE node's body, in each of its iterations."""

    def __init__(self, graph: Graph, node: Node, tensors: Sequence[Tensor]):
        condition, body = node.attributes.condition, node.attributes.body
        self.tensors = list(tensors)
        self._entry = _Values(graph, node.inputs)
        self._condition = _Values(condition, condition.outputs)
        self._body = _Values(body, [*body.outputs, *tensors])

    def __call__(self, arrays: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
        """The tensors' values, iteration by iteration, for these inputs of the graph."""
        carried = self._entry(arrays)
        while truth(self._condition(carried)[0]):
            limits.count_iteration()
            found = self._body(carried)
            carried = found[: len(found) - len(self.tensors)]
            yield found[len(carried) :]


class _Values:
    """Any tensors of a graph: computed ones, inputs and constants, each as often as it is named."""

    def __init__(self, graph: Graph, tensors: Sequence[Tensor | None]):
        self._graph, self._tensors = graph, [tensor for tensor in tensors if tensor is not None]
        made = {tensor for node in graph.nodes for tensor in node.outputs}
        computed = [tensor for tensor in dict.fromkeys(self._tensors) if tensor in made]
        self._execution = Execution(graph, computed) if computed else None

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        known = dict(zip(self._graph.inputs, arrays, strict=True))
        if self._execution is not None:
            known.update(zip(self._execution.tensors, self._execution(arrays), strict=True))
        return [tensor.value if tensor.is_constant else known[tensor] for tensor in self._tensors]  # type: ignore[misc]

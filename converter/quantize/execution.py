"""Running a float graph while it is being converted, to see tensors inside of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import runtime
from converter.quantize.options import REQUANTIZATION
from schema.graph import Graph, Model, Tensor


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

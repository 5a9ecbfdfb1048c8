"""Running a float graph while it is being converted, to see tensors inside of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schema import evaluate
from schema.graph import Graph, Tensor


def ancestors(graph: Graph, tensors: Sequence[Tensor]) -> Graph:
    """The part of the graph that computes these tensors, with them as outputs and the same inputs."""
    needed = set(tensors)
    nodes = []
    for node in reversed(graph.nodes):
        if any(tensor in needed for tensor in node.outputs):
            nodes.append(node)
            needed.update(tensor for tensor in node.inputs if tensor is not None)
    names = [str(i) for i in range(len(tensors))]
    return Graph(nodes[::-1], graph.inputs, graph.input_names, list(tensors), names, graph.name)


def execute(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The graph's outputs for these inputs."""
    return evaluate.run(graph, arrays)

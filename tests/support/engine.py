"""The engine against the references, for graphs of a node or a few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import runtime
import schema
from runtime.plan import HostStep, NativeStep
from schema import Graph, Model, Node, Tensor, evaluate, fixedpoint


def graph_of(nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Graph:
    return Graph(
        list(nodes),
        list(inputs),
        [f"x{i}" for i in range(len(inputs))],
        list(outputs),
        [f"y{i}" for i in range(len(outputs))],
    )


def run(graph: Graph, arrays: Sequence[np.ndarray], threads: int = 1, requantization: str = "TFLITE_DOUBLE"):
    """(outputs, steps of the plan) of a graph that was written to a file's bytes and loaded."""
    model = runtime.load(schema.write(Model([graph], requantization)), threads)
    result = model(*arrays)
    outputs = list(result.values()) if isinstance(result, dict) else [result]
    return outputs, model.plan([np.asarray(a) for a in arrays]).steps


def compare(
    nodes: Sequence[Node],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    arrays: Sequence[np.ndarray],
    native: bool = True,
    rtol: float = 0.0,
    threads: int = 1,
    requantization: str = "TFLITE_DOUBLE",
) -> list[np.ndarray]:
    """The engine's outputs, after comparing them with the references'. native: no node may fall back to its reference.

    rtol 0 means equal bits; otherwise the error is relative to the largest finite value.
    """
    graph = graph_of(nodes, inputs, outputs)
    results, steps = run(graph, arrays, threads, requantization)
    if native:
        assert not [step.node for step in steps if isinstance(step, HostStep)], "a node has no kernel"
        assert any(isinstance(step, NativeStep) for step in steps)
    with fixedpoint.requantization(requantization):
        references = evaluate.run(graph, arrays)
    for result, expected in zip(results, references, strict=True):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        if rtol:
            largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
            np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol * largest)
        else:
            np.testing.assert_array_equal(result, expected)
    return results

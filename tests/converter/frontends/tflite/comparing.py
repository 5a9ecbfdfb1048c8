"""A `.tflite` file's bytes: LiteRT's outputs, those of the graph that is read, and those of the engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import converter
import runtime
import schema
from converter.frontends import tflite
from schema import Graph, evaluate
from tests.support import inventory
from tests.support.litert_files import Session
from tests.support.parity import assert_close


def assert_same(
    content: bytes,
    arrays: Sequence[np.ndarray],
    *,
    tolerance: float = 1e-6,
    resolver: str = "BUILTIN_REF",
) -> Graph:
    """The graph as it is read; its outputs, and those of the converted file, are LiteRT's: integers to the bit."""
    expected = Session(content, resolver).run(arrays)
    graph = tflite.read(content)
    check(evaluate.run(graph, arrays), expected, tolerance)
    converted = converter.convert(content).bytes
    check(evaluate.run(schema.read(converted).graph, arrays), expected, tolerance)
    results = runtime.load(converted, threads=1)(*arrays)
    check(list(results.values()) if isinstance(results, dict) else [results], expected, tolerance)
    record(graph)
    return graph


def record(graph: Graph) -> None:
    """Count the nodes of a graph whose outputs are LiteRT's."""
    for node in graph.nodes:
        types = [t and t.type for t in node.inputs], [t.type for t in node.outputs]
        inventory.record(inventory.LITERT, node.op, *types)


def check(ours: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> None:
    assert len(ours) == len(expected)
    for mine, theirs in zip(ours, expected, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if mine.dtype.kind == "f":
            assert_close(mine, theirs, tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)

"""Small graphs for the tests of passes, and the check that a rewrite keeps what a graph computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schema import evaluate, ops
from schema.graph import Constant, Graph, Tensor
from schema.inference import annotate
from tests.support.float_graphs import Builder


class Building(Builder):
    """Grows a graph: `x = b.x(None, 8, 8, 3)`, `y = b("RELU", x, layer="relu")`, `graph = b.end(y)`."""

    def x(self, *shape: int | None, dtype: Any = np.float32) -> Tensor:
        """Another input."""
        return self.input(f"input{len(self.graph.inputs)}", *shape, dtype=dtype)

    def __call__(self, op: str, *inputs: Tensor | None, layer: str = "", **attributes: Any) -> Tensor:
        """One node with one output; attributes that are not given have their defaults."""
        return self.node(op, *inputs, attributes=self.kind(op, **attributes), name=layer)

    @staticmethod
    def kind(op: str, **attributes: Any) -> Any:
        """The op's attributes, None for an op without."""
        given = ops.get(op).Attributes
        return None if given is None else given(**attributes)

    def integers(self, *values: int) -> Tensor:
        return self.constant(np.array(values), np.int32)

    def index(self, value: int) -> Tensor:
        return self.constant(value, np.int32)

    def normal(self, *shape: int) -> Tensor:
        return self.constant(self.rng.normal(size=shape))

    def positive(self, *shape: int) -> Tensor:
        return self.constant(self.rng.uniform(0.5, 1.5, shape))

    def batch_of(self, x: Tensor) -> Tensor:
        """SHAPE(x)[0], as Keras asks for it."""
        shape = self("SHAPE", x, dtype=np.dtype(np.int32))
        return self("STRIDED_SLICE", shape, self.integers(0), self.integers(1), self.integers(1), shrink_axis_mask=1)


def stored(tensor: Tensor) -> Constant:
    assert tensor.constant is not None
    return tensor.constant


def names(graph: Graph) -> list[str]:
    """The ops, in order."""
    return [node.op for node in graph.nodes]


def draw(graph: Graph, rng: np.random.Generator, batch: int) -> list[np.ndarray]:
    """Inputs with that many in every unknown first dimension, 9 and more in other unknown ones."""
    arrays = []
    for tensor in graph.inputs:
        shape = [batch if axis == 0 else 8 + axis for axis in range(len(tensor.shape))]
        shape = [s if d is None else d for s, d in zip(shape, tensor.shape, strict=True)]
        values = 2.5 * rng.normal(size=shape)
        arrays.append(values.astype(tensor.dtype))
    return arrays


def rewritten(graph: Graph, run: Callable[[Graph], list[str]], tolerance: float = 2e-6) -> list[str]:
    """What the pass says it did, having shown on several drawn inputs that the graph still computes the same."""
    annotate(graph)
    rng = np.random.default_rng(7)
    cases = [draw(graph, rng, batch) for batch in (1, 2, 3)]
    before = [evaluate.run(graph, arrays) for arrays in cases]
    signature = (
        list(graph.inputs),
        list(graph.input_names),
        list(graph.output_names),
        [t.dtype for t in graph.outputs],
    )
    lines = run(graph)
    annotate(graph)
    check_order(graph)
    assert signature == (graph.inputs, graph.input_names, graph.output_names, [t.dtype for t in graph.outputs])
    for arrays, expected in zip(cases, before, strict=True):
        compare(evaluate.run(graph, arrays), expected, tolerance)
    return lines if isinstance(lines, list) else [str(lines)]


def compare(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        assert np.max(np.abs(a.astype(np.float64) - e), initial=0) <= tolerance * max(1.0, np.max(np.abs(e), initial=0))


def check_order(graph: Graph) -> None:
    """Every node reads only what is there when it runs."""
    there = set(graph.inputs)
    for node in graph.nodes:
        assert all(t is None or t.is_constant or t in there for t in node.inputs), f"{node} reads what is not computed"
        there.update(node.outputs)
    assert there.issuperset(graph.outputs)

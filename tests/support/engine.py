"""The engine against the references, for graphs of a node or a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import runtime
import schema
from runtime.chains import Chain
from runtime.lowering.base import PackedWeights
from runtime.plan import Plan
from runtime.steps import HostStep, NativeStep
from schema import Graph, Model, Node, Quantization, Tensor, evaluate, fixedpoint
from tests.support import inventory
from tests.support.litert import Operand

MEMORY = 1 << 30  # bytes that a plan may take


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
    for step in steps:
        for node in _single(step.nodes) if isinstance(step, NativeStep) else []:
            inventory.record(
                inventory.KERNEL, node.op, [t and t.type for t in node.inputs], [t.type for t in node.outputs]
            )
    return results


def _single(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, those of chains one by one."""
    return [n for node in nodes for n in ([s.node for s in node.stages] if isinstance(node, Chain) else [node])]


def assert_kernel(
    op: str,
    attributes: Any,
    inputs: Sequence[Operand | None],
    quantizations: Sequence[Quantization | None],
    expected: Sequence[np.ndarray],
    tolerance: float = 1e-6,
) -> None:
    """The engine computes of one op what its reference did, where it has a kernel for it.

    Integers are equal; floats differ by at most `tolerance` times the largest finite magnitude.
    """
    tensors = [_tensor(operand, f"x{i}") for i, operand in enumerate(inputs)]
    outputs = [Tensor(f"y{i}", a.dtype, None, q) for i, (a, q) in enumerate(zip(expected, quantizations, strict=True))]
    fed = [t for t in tensors if t is not None and not t.is_constant]
    arrays = [o.value for o in inputs if o is not None and not o.constant]
    graph = graph_of([Node(op, tensors, outputs, attributes)], fed, outputs)
    plan = Plan(graph, [a.shape for a in arrays], PackedWeights(MEMORY), "TFLITE_DOUBLE", MEMORY)
    if not plan.steps or isinstance(plan.steps[0], HostStep):
        return
    for result, reference in zip(plan.run(arrays, 1), expected, strict=True):
        assert result.dtype == reference.dtype
        assert result.shape == reference.shape
        if result.dtype.kind == "f":
            largest = float(np.abs(reference[np.isfinite(reference)]).max(initial=0))
            np.testing.assert_allclose(result, reference, rtol=0, atol=tolerance * largest)
        else:
            np.testing.assert_array_equal(result, reference)
    inventory.record(inventory.KERNEL, op, [t and t.type for t in tensors], [t.type for t in outputs])


def _tensor(operand: Operand | None, name: str) -> Tensor | None:
    if operand is None:
        return None
    if operand.constant:
        return Tensor.from_array(name, operand.value, operand.quantization)
    return Tensor(name, operand.value.dtype, operand.value.shape, operand.quantization)

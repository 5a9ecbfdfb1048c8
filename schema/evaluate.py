"""A whole graph by the references: slow, simple and normative. The oracle for kernels, passes and quantization."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import numpy as np

from schema import limits, ops
from schema.errors import InputError, MemoryLimitError, XnnError
from schema.graph import Graph, Node, Tensor, TensorType
from schema.inference import place, size_in_bytes


def run_node(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """One node on these arrays (None for an optional input left out). Raises XnnErrors that name the node,
    MemoryLimitError for an output of more bytes than the surrounding `schema.limits.memory` context allows.
    """
    op, memory_limit = ops.get(node.op), limits.memory_limit()
    types = [
        None if tensor is None or array is None else TensorType(array.shape, array.dtype, tensor.quantization)
        for tensor, array in zip(node.inputs, arrays, strict=True)
    ]
    try:
        inferred = op.infer(node.attributes, types, arrays)
        for kind in inferred:
            if (size := size_in_bytes(kind)) > memory_limit:
                raise MemoryLimitError(f"{kind} takes {size} bytes, more than the limit of {memory_limit}")
        outputs = [TensorType(k.shape, k.dtype, t.quantization) for k, t in zip(inferred, node.outputs, strict=True)]
        return ops.run(op, node.attributes, arrays, types, outputs)
    except XnnError as error:
        raise place(node, error) from None


def run(
    graph: Graph,
    arrays: Sequence[np.ndarray],
    keep: Sequence[Tensor] = (),
    state: MutableMapping[str, np.ndarray] | None = None,
) -> list[np.ndarray]:
    """The graph's outputs for these inputs, in declared order; then the arrays of the tensors in `keep`.

    state: what the graph remembers, by name, {} before its first run. It is changed to what it is after the run, and
    neither `arrays` nor the result holds it. None: the graph as a function, whose inputs and outputs hold it.
    Accumulators are requantized by the rule of the surrounding `schema.fixedpoint.requantization` context, loops end
    in ExecutionError by that of `schema.limits.iterations`.
    """
    if state is not None:
        return _run_with_state(graph, arrays, keep, state)
    if len(arrays) != len(graph.inputs):
        raise InputError(f"{len(arrays)} arrays for the {len(graph.inputs)} inputs {graph.input_names}")
    wanted = [*graph.outputs, *keep]
    last_use = {tensor: index for index, node in enumerate(graph.nodes) for tensor in node.inputs if tensor is not None}
    values: dict[Tensor, np.ndarray] = dict(zip(graph.inputs, (np.asarray(a) for a in arrays), strict=True))

    def value(tensor: Tensor | None) -> np.ndarray | None:
        if tensor is None:
            return None
        return tensor.value if tensor.is_constant else values[tensor]

    kept = set(wanted)
    for index, node in enumerate(graph.nodes):
        results = run_node(node, [value(tensor) for tensor in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
        for tensor in node.inputs:
            if tensor is not None and last_use[tensor] == index and tensor not in kept:
                values.pop(tensor, None)
    return [value(tensor) for tensor in wanted]  # type: ignore[misc]


def _run_with_state(
    graph: Graph, arrays: Sequence[np.ndarray], keep: Sequence[Tensor], state: MutableMapping[str, np.ndarray]
) -> list[np.ndarray]:
    if len(arrays) != len(graph.arguments):
        raise InputError(f"{len(arrays)} arrays for the {len(graph.arguments)} inputs {graph.argument_names}")
    names, count = graph.state_names, len(graph.results)
    before = [np.asarray(state.get(name, tensor.value)) for name, tensor in zip(names, graph.state, strict=True)]
    values = run(graph, [*arrays, *before], keep)
    state.update(zip(names, values[count:], strict=False))
    return values[:count] + values[len(graph.outputs) :]

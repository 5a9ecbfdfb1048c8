"""A whole graph by the references: slow, simple and normative. The oracle for kernels, passes and quantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schema import ops
from schema.errors import InputError, MemoryLimitError, XnnError
from schema.graph import Graph, Node, Tensor, TensorType
from schema.inference import MAX_TENSOR_BYTES, place, size_in_bytes


def run_node(node: Node, arrays: Sequence[np.ndarray | None], memory_limit: int = MAX_TENSOR_BYTES) -> list[np.ndarray]:
    """One node on these arrays (None for an optional input left out). Raises XnnErrors that name the node,
    MemoryLimitError for an output of more than `memory_limit` bytes.
    """
    op = ops.get(node.op)
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


def run(graph: Graph, arrays: Sequence[np.ndarray], keep: Sequence[Tensor] = ()) -> list[np.ndarray]:
    """The graph's outputs for these inputs, in declared order; then the arrays of the tensors in `keep`.

    Accumulators are requantized by the rule of the surrounding `schema.fixedpoint.requantization` context.
    """
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

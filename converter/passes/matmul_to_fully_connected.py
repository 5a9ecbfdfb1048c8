"""BATCH_MATMUL(x, constant [in, out]) -> FULLY_CONNECTED(x, constant [out, in])."""

from __future__ import annotations

import numpy as np

from converter.constants import is_float
from converter.rewriter import Rewriter, layer
from schema.graph import Constant, Graph, Tensor
from schema.ops.attributes import FullyConnectedAttributes


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes("BATCH_MATMUL"):
        x, matrix = node.inputs
        if x is None or matrix is None or x.shape is None or matrix.shape is None or not is_float(x):
            continue
        lead = matrix.shape[:-2]
        if matrix.constant is None or node.attributes.adj_x or x.is_constant:
            continue
        if len(matrix.shape) > len(x.shape) or any(size != 1 for size in lead):
            continue
        weights = _weights(matrix, transpose=not node.attributes.adj_y)
        rewriter.rewrite(node, "FULLY_CONNECTED", [x, weights], FullyConnectedAttributes())
        changes.append(f"{layer(node)}: product with a constant became FULLY_CONNECTED")
    rewriter.commit()
    return changes


def _weights(matrix: Tensor, transpose: bool) -> Tensor:
    """(out, in) weights of a constant (..., in, out), in the stored dtype where there is no factor per channel."""
    stored = matrix.constant
    assert stored is not None and matrix.value is not None
    values = np.asarray(stored.values) if stored.channel_scale is None else matrix.value
    values = values.reshape(values.shape[-2:])
    values = np.ascontiguousarray(values.T if transpose else values)
    return Tensor(matrix.name, matrix.dtype, values.shape, constant=Constant(values))

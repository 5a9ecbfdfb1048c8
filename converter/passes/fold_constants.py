"""f(constants) -> constant, where the result is not much larger than what it is made of.

FILL, TILE, BROADCAST_TO, RANGE and the like make large arrays of few bytes: those stay computed. So do branches and
loops, which may take any time.
"""

from __future__ import annotations

from collections import defaultdict

from converter.rewriter import Rewriter, layer
from schema.evaluate import run_node
from schema.graph import Graph, Tensor
from schema.inference import CONTROL_FLOW

SMALL = 4096
"""Bytes that a constant may have whatever it is made of."""


def run(graph: Graph) -> list[str]:
    rewriter = Rewriter(graph)
    computed: dict[str, list[str]] = defaultdict(list)
    for node in rewriter.nodes():
        if node.op in CONTROL_FLOW or not all(tensor is None or tensor.is_constant for tensor in node.inputs):
            continue
        if any(rewriter.is_output(tensor) for tensor in node.outputs):
            continue
        sources = sum(_bytes(tensor) or 0 for tensor in node.inputs if tensor is not None)
        results = [_bytes(tensor) for tensor in node.outputs]
        if None in results or sum(size or 0 for size in results) > max(SMALL, sources):
            continue
        rewriter.make_constant(node, run_node(node, [None if t is None else t.value for t in node.inputs]))
        computed[layer(node)].append(node.op)
    rewriter.commit()
    return [f"{name}: {', '.join(sorted(set(ops)))} of constants computed" for name, ops in computed.items()]


def _bytes(tensor: Tensor) -> int | None:
    """Bytes of a tensor of known shape, else None."""
    size = tensor.dtype.itemsize
    for dim in tensor.shape if tensor.shape is not None else (None,):
        if dim is None:
            return None
        size *= dim
    return size

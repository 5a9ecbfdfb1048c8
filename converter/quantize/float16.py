"""Weights stored as float16: half the bytes, computed with as float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from converter.quantize.report import Kept
from schema.graph import Constant, Graph, Node, Tensor, all_nodes

SMALLEST_SIZE = 32  # elements: below that nothing is saved that matters
SMALLEST = float(np.finfo(np.float16).tiny)  # of normal float16 numbers
LARGEST = float(np.finfo(np.float16).max)
FLOAT32 = np.dtype(np.float32)


def store_float16(graph: Graph, kept_nodes: Mapping[Node, str]) -> tuple[list[Tensor], list[Kept]]:
    """Store float32 constants as float16 where that loses only precision. Returns (changed, kept although large
    enough). kept_nodes: whose constants stay float32, and why.
    """
    protected = {tensor: reason for node, reason in kept_nodes.items() for tensor in node.inputs}
    changed: list[Tensor] = []
    kept: list[Kept] = []
    for tensor in dict.fromkeys(t for node in all_nodes(graph) for t in node.inputs if t is not None):
        constant = tensor.constant
        if constant is None or tensor.dtype != FLOAT32 or tensor.quantization is not None:
            continue
        if np.asarray(constant.values).dtype != FLOAT32 or constant.values.size < SMALLEST_SIZE:
            continue
        if tensor in protected:
            kept.append(Kept(tensor, protected[tensor]))
            continue
        largest = float(np.abs(constant.values).max())
        if not largest <= LARGEST:
            kept.append(Kept(tensor, f"values up to {largest:.4g} exceed float16's {LARGEST:.0f}"))
        elif 0 < largest < SMALLEST:
            kept.append(Kept(tensor, f"values up to {largest:.4g} are below float16's normal numbers"))
        else:
            tensor.set_constant(Constant(constant.values.astype(np.float16), constant.channel_scale, constant.axis))
            changed.append(tensor)
    return changed, kept

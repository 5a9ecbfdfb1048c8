"""Whether a graph computes with integers that stand for real numbers already."""

from __future__ import annotations

from schema.graph import Graph, Tensor, all_nodes

BORDERS = ("QUANTIZE", "DEQUANTIZE")


def computes_integers(graph: Graph) -> bool:
    """Whether any op but QUANTIZE and DEQUANTIZE, which alone only round, reads or makes quantized numbers."""
    return any(
        node.op not in BORDERS and any(map(_is_quantized, (*node.inputs, *node.outputs))) for node in all_nodes(graph)
    )


def _is_quantized(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.quantization is not None

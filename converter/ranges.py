"""Which values a tensor can hold: clamps, and what follows from the ops that make it."""

from __future__ import annotations

from converter.constants import is_float, scalar
from converter.rewriter import Rewriter
from schema.graph import Node, Tensor
from schema.ops.attributes import activation_range

INFINITY = float("inf")
Range = tuple[float, float]
ANY: Range = (-INFINITY, INFINITY)
RANGES: dict[str, Range] = {
    "RELU": (0.0, INFINITY),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "LOGISTIC": (0.0, 1.0),
    "TANH": (-1.0, 1.0),
    "SOFTMAX": (0.0, 1.0),
    "SOFTSIGN": (-1.0, 1.0),
    "SOFTPLUS": (0.0, INFINITY),
    "EXP": (0.0, INFINITY),
    "SQUARE": (0.0, INFINITY),
    "SQRT": (0.0, INFINITY),
    "ABS": (0.0, INFINITY),
}
WITHIN = """
RESHAPE TRANSPOSE EXPAND_DIMS SQUEEZE SLICE STRIDED_SLICE MAX_POOL_2D AVERAGE_POOL_2D MAX_POOL_3D
AVERAGE_POOL_3D MEAN REDUCE_MAX REDUCE_MIN TILE BROADCAST_TO REVERSE_V2 SPACE_TO_DEPTH DEPTH_TO_SPACE
BATCH_TO_SPACE_ND RESIZE_NEAREST_NEIGHBOR
""".split()
"""Ops whose results lie between the lowest and the highest of their first input."""
DEPTH = 32


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def named(low: float, high: float) -> str:
    """The activation that clamps to this range."""
    return {
        (-INFINITY, INFINITY): "NONE",
        (0.0, INFINITY): "RELU",
        (0.0, 6.0): "RELU6",
        (-1.0, 1.0): "RELU_N1_TO_1",
    }.get((low, high), "CLAMP")


def bounds_of(node: Node) -> tuple[Tensor, float, float] | None:
    """(x, lowest, highest) of a node that clamps x, else None."""
    if node.op in ("RELU", "RELU6", "RELU_N1_TO_1"):
        x = node.inputs[0]
        return None if x is None else (x, *RANGES[node.op])
    if node.op == "CLAMP":
        x = node.inputs[0]
        return None if x is None else (x, node.attributes.min, node.attributes.max)
    if node.op in ("MAXIMUM", "MINIMUM"):
        for x, bound in (node.inputs, node.inputs[::-1]):
            number = scalar(bound)
            if number is not None and x is not None and not x.is_constant:
                return (x, number, INFINITY) if node.op == "MAXIMUM" else (x, -INFINITY, number)
    return None


def value_range(rewriter: Rewriter, tensor: Tensor) -> tuple[float, float]:
    """The (lowest, highest) that the tensor's elements can be, infinite where nothing tells."""
    return _range(rewriter, tensor, {}, DEPTH)


def _range(rewriter: Rewriter, tensor: Tensor, seen: dict[Tensor, Range], depth: int) -> Range:
    if tensor not in seen:
        node = rewriter.producer(tensor)
        known = node is not None and is_float(tensor) and depth > 0
        seen[tensor] = _of_node(rewriter, node, seen, depth - 1) if known and node is not None else ANY
    return seen[tensor]


def _of_node(rewriter: Rewriter, node: Node, seen: dict[Tensor, Range], depth: int) -> Range:
    read = bounds_of(node)
    if read is not None:
        x, *bounds = read
        low, high = _range(rewriter, x, seen, depth)
        return clip(low, *bounds), clip(high, *bounds)
    if node.op in RANGES:
        return RANGES[node.op]
    if getattr(node.attributes, "activation", "NONE") != "NONE":
        return activation_range(node.attributes)
    x = node.inputs[0] if node.inputs else None
    if node.op in WITHIN and x is not None:
        return _range(rewriter, x, seen, depth)
    if node.op == "PAD" and x is not None:
        low, high = _range(rewriter, x, seen, depth)
        return min(low, 0.0), max(high, 0.0)
    if node.op == "CONCATENATION":
        ranges = [_range(rewriter, tensor, seen, depth) for tensor in node.inputs if tensor is not None]
        return min(low for low, _ in ranges), max(high for _, high in ranges)
    return ANY

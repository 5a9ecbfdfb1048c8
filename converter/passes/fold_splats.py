"""ADD(x, FILL(dims, v)) -> ADD(x, v), and so for every binary op: an operand that is one number everywhere becomes
that number. SELECT_V2(c, a, b) -> a or b where c is one truth value everywhere.

Normalization layers are spelled with tensors of ones as large as the input; their means and counts are numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from converter.constants import constant, is_float, uniform
from converter.rewriter import Rewriter, layer
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Tensor

BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")
MOVES = ("RESHAPE", "TRANSPOSE", "BROADCAST_TO", "TILE", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE")
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "EQUAL": operator.eq,
    "NOT_EQUAL": operator.ne,
    "GREATER": operator.gt,
    "GREATER_EQUAL": operator.ge,
    "LESS": operator.lt,
    "LESS_EQUAL": operator.le,
}
DEPTH = 16


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes("SELECT_V2"):
        truth = _splat(rewriter, shapes, node.inputs[0], DEPTH)
        chosen = None if truth is None else node.inputs[1 if truth else 2]
        if chosen is not None and shapes.same(chosen, node.outputs[0]) and rewriter.bypass(node, chosen):
            changes.append(f"{layer(node)}: SELECT_V2 always takes the same side")
    for node in rewriter.nodes(*BINARY):
        for index in (0, 1):
            splat, other = node.inputs[index], node.inputs[1 - index]
            if splat is None or other is None or splat.is_constant:
                continue
            number = _splat(rewriter, shapes, splat, DEPTH)
            if number is not None and shapes.same(other, node.outputs[0]):
                inputs = list(node.inputs)
                inputs[index] = constant(f"{node.name}/splat", np.array(number, splat.dtype))
                rewriter.rewrite(node, inputs=inputs)
                changes.append(f"{layer(node)}: an operand of {node.op} is {number:g} everywhere")
                break
    rewriter.commit()
    return changes


def _splat(rewriter: Rewriter, shapes: SymbolicShapes, tensor: Tensor | None, depth: int) -> float | None:
    """What every element of the tensor is (1 and 0 for truth values), None where that is not seen."""
    if tensor is None or depth == 0:
        return None
    node = rewriter.producer(tensor)
    if node is not None and node.op in COMPARISONS:
        a, b = (_splat(rewriter, shapes, operand, depth - 1) for operand in node.inputs)
        return None if a is None or b is None else float(COMPARISONS[node.op](a, b))
    if not is_float(tensor) or tensor.is_constant:
        return uniform(tensor)
    if node is None or getattr(node.attributes, "activation", "NONE") != "NONE":
        return None
    if node.op == "FILL":
        return uniform(node.inputs[1])
    if node.op in MOVES:
        return _splat(rewriter, shapes, node.inputs[0], depth - 1)
    if node.op in ("ADD", "SUB", "MUL"):
        a, b = (_splat(rewriter, shapes, operand, depth - 1) for operand in node.inputs)
        if node.op == "MUL" and 0.0 in (a, b):
            return None  # 0 * inf is not 0
        if a is None or b is None:
            return None
        return a + b if node.op == "ADD" else a - b if node.op == "SUB" else a * b
    if node.op in ("SUM", "MEAN"):
        number, count = _splat(rewriter, shapes, node.inputs[0], depth - 1), _reduced(shapes, node.inputs)
        if number is None or count is None:
            return None
        return number * count if node.op == "SUM" else number
    return None


def _reduced(shapes: SymbolicShapes, inputs: list[Tensor | None]) -> int | None:
    """How many elements a reduction makes one of, where that is known."""
    dims, axes = shapes.dims(inputs[0]), shapes.elements(inputs[1])
    if dims is None or axes is None:
        return None
    count = 1
    for axis in {(size.value or 0) % len(dims) for size in axes.flat}:
        size = dims[axis].value
        if size is None:
            return None
        count *= size
    return count

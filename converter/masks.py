"""Reading masks out of graphs: numbers that are one value where something holds and another one where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from converter.constants import constant
from converter.rewriter import Rewriter
from schema.graph import Node, Tensor
from schema.ops.dtypes import INTEGERS

MOVES = frozenset("EXPAND_DIMS RESHAPE SQUEEZE SLICE STRIDED_SLICE TRANSPOSE TILE BROADCAST_TO".split())
"""Ops that only move elements of their first input, of any dtype."""
DEPTH = 32


@dataclass(frozen=True)
class Choice:
    """A tensor made of `source` by arithmetic with numbers, and by `moves`, in their order.

    source: bools, or integers. one, zero: what the tensor is where the source is 1 (true) and where it is 0; of other
    integers it lies on the line through these.
    """

    source: Tensor
    one: float
    zero: float
    moves: tuple[Node, ...] = ()


def choice(rewriter: Rewriter, tensor: Tensor | None, depth: int = DEPTH) -> Choice | None:
    """How the tensor, of real numbers or integers, is chosen; None where it is not seen to be."""
    if tensor is None or depth == 0 or tensor.quantization is not None:
        return None
    if tensor.is_constant:
        return _of_constant(tensor)
    node = rewriter.producer(tensor)
    if node is not None and node.op in MOVES:
        moved = choice(rewriter, node.inputs[0], depth - 1)
        return None if moved is None else replace(moved, moves=(*moved.moves, node))
    if node is not None and node.op == "CAST":
        x = node.inputs[0]
        if x is not None and x.dtype == np.bool_:
            return Choice(x, 1.0, 0.0)
        if x is not None and (x.dtype in INTEGERS or (x.dtype.kind == tensor.dtype.kind == "f")):
            return choice(rewriter, x, depth - 1)
    if node is not None and node.op == "SELECT_V2":
        held, other = (_number(value) for value in node.inputs[1:])
        condition = node.inputs[0]
        return None if held is None or other is None or condition is None else Choice(condition, held, other)
    found = None if node is None else _arithmetic(rewriter, node, depth - 1)
    return Choice(tensor, 1.0, 0.0) if found is None and tensor.dtype in INTEGERS else found


def _of_constant(tensor: Tensor) -> Choice | None:
    value = tensor.value
    if value is None or value.dtype.kind not in "if" or not value.size or np.isnan(value).any():
        return None
    low, high = value.min(), value.max()
    if low == high or not ((value == low) | (value == high)).all():
        return None
    return Choice(constant(tensor.name, value == high), float(high), float(low))


def _number(tensor: Tensor | None) -> float | None:
    """The only element of a constant."""
    value = None if tensor is None or tensor.quantization is not None else tensor.value
    return float(value.reshape(())) if value is not None and value.size == 1 and value.dtype.kind in "if" else None


def _arithmetic(rewriter: Rewriter, node: Node, depth: int) -> Choice | None:
    """The choice that a sum, difference or product with a number makes of another one."""
    if node.op not in ("ADD", "SUB", "MUL") or node.attributes.activation != "NONE":
        return None
    for first in (True, False):
        x, other = node.inputs if first else node.inputs[::-1]
        number = _number(other)
        if number is None or other is None or x is None or len(other.shape or ()) > len(x.shape or ()):
            continue
        found = choice(rewriter, x, depth)
        if found is not None:
            one, zero = (_result(node.op, value, number, first) for value in (found.one, found.zero))
            return replace(found, one=one, zero=zero)
    return None


def _result(op: str, x: float, number: float, first: bool) -> float:
    with np.errstate(all="ignore"):
        a, b = (np.float64(x), np.float64(number)) if first else (np.float64(number), np.float64(x))
        return float(a + b if op == "ADD" else a - b if op == "SUB" else a * b)


def where_zero(rewriter: Rewriter, found: Choice, most: float, before: Node) -> Tensor | None:
    """A bool tensor, computed before a node: where the chosen tensor is 0. None unless it is `most` or less elsewhere.

    Integers count as the masks of 0 and 1 that they are in sums with huge numbers: all else would be as huge.
    """
    if found.one == 0.0 and found.zero <= most:
        test, limit = "GREATER", 0
    elif found.zero == 0.0 and found.one <= most:
        test, limit = "LESS", 1
    else:
        return None
    mask = found.source
    if mask.dtype != np.bool_:
        bound = constant(f"{before.name}/bound", np.array(limit, mask.dtype))
        mask = rewriter.add(test, [mask, bound], before=before)
    elif test == "LESS":
        mask = negated(rewriter, mask, before)
    return _moved(rewriter, mask, found.moves, before)


def negated(rewriter: Rewriter, mask: Tensor, before: Node) -> Tensor:
    """Where a mask does not hold, computed before a node."""
    if mask.value is not None:
        return constant(mask.name, ~mask.value)
    inner: Tensor = mask
    moves: list[Node] = []
    while (node := rewriter.producer(inner, *MOVES)) is not None and node.inputs[0] is not None:
        inner, moves = node.inputs[0], [node, *moves]
    node = rewriter.producer(inner, "LOGICAL_NOT")
    if node is not None and node.inputs[0] is not None:
        return _moved(rewriter, node.inputs[0], moves, before)
    return rewriter.add("LOGICAL_NOT", [mask], before=before)


def _moved(rewriter: Rewriter, mask: Tensor, moves: Sequence[Node], before: Node) -> Tensor:
    for node in moves:
        mask = rewriter.add(node.op, [mask, *node.inputs[1:]], node.attributes, before=before)
    return mask

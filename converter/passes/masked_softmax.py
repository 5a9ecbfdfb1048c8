"""SOFTMAX(SELECT_V2(mask, x, -1e9)), SOFTMAX(ADD(x, MUL(SUB(1, CAST(mask)), -1e9))), SOFTMAX(ADD(x, c)) where c is a
constant of 0 and -1e9, and the like -> SOFTMAX(x, mask); SELECT_V2(mask, SOFTMAX(x, mask), 0) -> SOFTMAX(x, mask) where
the mask is a constant that lets something in everywhere.

-1e4, after the softmax's own factor, and all below counts as "not let in". Where a mask lets in nothing, all counts
alike afterwards: so it did with -1e9 in place of scores, or added to them; -1e4 added left them as they were.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converter.constants import constant, is_float, uniform
from converter.masks import choice, negated, where_zero
from converter.rewriter import Rewriter, layer
from converter.sizes import ONE
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node, Tensor

HUGE = -1e4


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes("SOFTMAX"):
        if len(node.inputs) > 1:
            if _simplify(rewriter, shapes, node):
                changes.append(f"{layer(node)}: SOFTMAX has a smaller mask")
            continue
        found = _match(rewriter, node)
        if found is not None:
            x, mask = found
            smaller = _smaller(rewriter, shapes, x, mask)
            rewriter.rewrite(node, inputs=[x] if smaller is None else [x, smaller])
            changes.append(f"{layer(node)}: SOFTMAX behind a mask")
    for node in rewriter.nodes("SELECT_V2"):
        if _is_done_by_softmax(rewriter, shapes, node) and rewriter.bypass(node, node.inputs[1]):
            changes.append(f"{layer(node)}: zeros behind a mask are those of SOFTMAX")
    rewriter.commit()
    return changes


def _match(rewriter: Rewriter, node: Node) -> tuple[Tensor, Tensor] | None:
    """(x, mask) of a softmax of masked numbers."""
    masked, beta = node.inputs[0], node.attributes.beta
    if masked is None or not is_float(masked) or beta <= 0:
        return None
    above = rewriter.producer(masked, "SELECT_V2", "ADD", "SUB")
    if above is None:
        return None
    most = HUGE / beta
    if above.op == "SELECT_V2":
        return _selected(rewriter, above, most, node)
    return _added(rewriter, above, most, node) if above.attributes.activation == "NONE" else None


def _fits(mask: Tensor, x: Tensor, masked: Tensor) -> bool:
    """Whether axes stay what they are without what masks x."""
    if mask.shape is None or x.shape is None or masked.shape is None:
        return False
    return len(mask.shape) <= len(x.shape) == len(masked.shape)


def _selected(rewriter: Rewriter, select: Node, most: float, before: Node) -> tuple[Tensor, Tensor] | None:
    condition, held, other = select.inputs
    for x, out, let_in in ((held, other, True), (other, held, False)):
        if condition is None or x is None or x.is_constant or not _is_out(rewriter, out, x, most):
            continue
        if _fits(condition, x, select.outputs[0]):
            return x, condition if let_in else negated(rewriter, condition, before)
    return None


def _is_out(rewriter: Rewriter, out: Tensor | None, x: Tensor, most: float) -> bool:
    """Whether a tensor is a huge negative number, or the sum of x with one."""
    node = rewriter.producer(out, "ADD")
    if node is not None and node.attributes.activation == "NONE" and x in node.inputs:
        a, b = node.inputs
        out = b if a is x else a
    number = uniform(out)
    return number is not None and number <= most


def _added(rewriter: Rewriter, add: Node, most: float, before: Node) -> tuple[Tensor, Tensor] | None:
    a, b = add.inputs
    for x, addend in ((a, b), (b, a))[: 2 if add.op == "ADD" else 1]:
        if x is None or addend is None or x.is_constant or not _fits(addend, x, add.outputs[0]):
            continue
        found = choice(rewriter, addend)
        if found is not None and add.op == "SUB":
            found = replace(found, one=-found.one, zero=-found.zero)
        mask = None if found is None else where_zero(rewriter, found, most, before)
        if mask is not None:
            return x, mask
    return None


def _simplify(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> bool:
    x, mask = node.inputs
    if x is None or mask is None:
        return False
    smaller = _smaller(rewriter, shapes, x, mask)
    if smaller is mask:
        return False
    rewriter.rewrite(node, inputs=[x] if smaller is None else [x, smaller])
    return True


def _smaller(rewriter: Rewriter, shapes: SymbolicShapes, x: Tensor, mask: Tensor) -> Tensor | None:
    """What is left of a mask without what lets in everything, and of constants along axes where they do not change.
    None where everything is let in. Nothing goes that could give the result a size that x has not.
    """
    if _within(shapes, mask, x):
        if _holds(rewriter, mask):
            return None
        if mask.value is not None:
            return _compact(mask, mask.value)
    node = rewriter.producer(mask, "LOGICAL_AND")
    return mask if node is None else _without_ones(rewriter, shapes, x, node, mask)


def _without_ones(rewriter: Rewriter, shapes: SymbolicShapes, x: Tensor, node: Node, mask: Tensor) -> Tensor | None:
    a, b = node.inputs
    for ones, rest in ((a, b), (b, a)):
        if ones is not None and rest is not None and _holds(rewriter, ones) and _within(shapes, ones, x):
            return _smaller(rewriter, shapes, x, rest)
    return mask


def _holds(rewriter: Rewriter, mask: Tensor) -> bool:
    """Whether a mask is true everywhere."""
    fill = rewriter.producer(mask, "FILL")
    value = mask.value if fill is None or fill.inputs[1] is None else fill.inputs[1].value
    return value is not None and bool(value.all())


def _within(shapes: SymbolicShapes, mask: Tensor, x: Tensor) -> bool:
    """Whether each dimension of the mask is surely 1 or that of x."""
    of_mask, of_x = shapes.dims(mask), shapes.dims(x)
    if of_mask is None or of_x is None or len(of_mask) > len(of_x):
        return False
    return all(a in (ONE, b) for a, b in zip(of_mask[::-1], of_x[::-1], strict=False))


def _compact(mask: Tensor, value: np.ndarray) -> Tensor:
    small = value
    for axis in range(value.ndim):
        first = small.take([0], axis)
        small = first if (small == first).all() else small
    return mask if small.shape == value.shape else constant(mask.name, small)


def _is_done_by_softmax(rewriter: Rewriter, shapes: SymbolicShapes, select: Node) -> bool:
    condition, y, other = select.inputs
    node = rewriter.producer(y, "SOFTMAX")
    if node is None or len(node.inputs) < 2 or uniform(other) != 0.0 or condition is None or node.inputs[1] is None:
        return False
    wanted, mask = condition.value, node.inputs[1].value
    if wanted is None or mask is None or y is None or other is None or len(other.shape or ()) > len(y.shape or ()):
        return False
    if not _within(shapes, condition, y) or not (wanted == mask).all():
        return False
    axis = node.attributes.axis % len(y.shape or ())
    whole = mask.reshape((1,) * (len(y.shape or ()) - mask.ndim) + mask.shape)
    return bool(whole.any(axis=axis).all())

"""TRANSPOSE(TRANSPOSE(x)) -> TRANSPOSE(x) or x; f(TRANSPOSE(x)) -> TRANSPOSE(f(x)) for what works on each element
alone, with constants, with two operands transposed alike, for reductions, and for SOFTMAX, PAD and CONCATENATION
before another TRANSPOSE; a TRANSPOSE that moves only axes of 1 -> RESHAPE.

Transposes move towards the outputs, where they meet and cancel.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from converter.constants import constant, like, value_of, varies_by_channel
from converter.elementwise import BINARY, POINTWISE
from converter.passes.normalize_reductions import REDUCTIONS
from converter.rewriter import Rewriter, layer
from schema.graph import Graph, Node, Tensor

Perm = tuple[int, ...]


def run(graph: Graph) -> list[str]:
    rewriter, changes = Rewriter(graph), []
    for node in rewriter.nodes():
        rule = RULES.get(node.op)
        line = rule(rewriter, node) if rule is not None else None
        if line:
            changes.append(line)
    rewriter.commit()
    return changes


def _perm(node: Node) -> Perm | None:
    value, rank = value_of(node.inputs[1]), len(node.outputs[0].shape or ())
    return None if value is None or not rank else tuple(int(axis) % rank for axis in value)


def _inverse(perm: Perm) -> Perm:
    return tuple(int(axis) for axis in np.argsort(perm))


def _before(rewriter: Rewriter, tensor: Tensor | None, reader: Node) -> tuple[Tensor, Perm] | None:
    """(x, perm) where the tensor is TRANSPOSE(x, perm), made for this reader alone."""
    node = rewriter.producer(tensor, "TRANSPOSE")
    if node is None or tensor is None or rewriter.only_consumer(tensor) is not reader:
        return None
    if varies_by_channel(tensor) or varies_by_channel(reader.outputs[0]):
        return None
    x, perm = node.inputs[0], _perm(node)
    return None if x is None or perm is None else (x, perm)


def _swap(rewriter: Rewriter, node: Node, inputs: list[Tensor | None], perm: Perm, attributes=...) -> str:
    """The node on these inputs, and behind it, in its place, the transpose."""
    attributes = node.attributes if attributes is ... else attributes
    line = f"{layer(node)}: TRANSPOSE moved behind {node.op}"
    inner = rewriter.add(node.op, inputs, attributes, before=node, quantization=node.outputs[0].quantization)
    order = constant(f"{node.name}/perm", np.array(perm, np.int32))
    rewriter.rewrite(node, "TRANSPOSE", [inner, order], None)
    return line


def _transpose(rewriter: Rewriter, node: Node) -> str | None:
    inner, outer = rewriter.producer(node.inputs[0], "TRANSPOSE"), _perm(node)
    first = None if inner is None else _perm(inner)
    if inner is not None and first is not None and outer is not None:
        x, both = inner.inputs[0], tuple(first[axis] for axis in outer)
        if x is not None and both == tuple(range(len(both))):
            return f"{layer(inner)} and {layer(node)}: transposes cancel" if rewriter.bypass(node, x) else None
        rewriter.rewrite(node, inputs=[x, constant(f"{node.name}/perm", np.array(both, np.int32))])
        return f"{layer(inner)} and {layer(node)}: transposes merged"
    return _to_reshape(rewriter, node, outer)


def _to_reshape(rewriter: Rewriter, node: Node, perm: Perm | None) -> str | None:
    x, shape = node.inputs[0], node.outputs[0].shape
    if x is None or x.shape is None or perm is None or shape is None or shape.count(None) > 1 or 0 in shape:
        return None
    moved = [axis for axis in perm if x.shape[axis] != 1]
    if moved != sorted(moved):
        return None
    target = np.array([-1 if size is None else size for size in shape], np.int32)
    rewriter.rewrite(node, "RESHAPE", [x, constant(f"{node.name}/shape", target)], None)
    return f"{layer(node)}: TRANSPOSE of axes of 1 became RESHAPE"


def _pointwise(rewriter: Rewriter, node: Node) -> str | None:
    read = _before(rewriter, node.inputs[0], node)
    return None if read is None else _swap(rewriter, node, [read[0]], read[1])


def _binary(rewriter: Rewriter, node: Node) -> str | None:
    reads = [_before(rewriter, tensor, node) for tensor in node.inputs]
    if reads[0] is not None and reads[1] is not None and reads[0][1] == reads[1][1]:
        return _swap(rewriter, node, [reads[0][0], reads[1][0]], reads[0][1])
    for index in (0, 1):
        read, fixed = reads[index], node.inputs[1 - index]
        value = value_of(fixed)
        if (
            read is None
            or value is None
            or fixed is None
            or value.ndim > len(read[1])
            or (node.op == "PRELU" and index)
        ):
            continue
        if varies_by_channel(fixed):
            continue
        x, perm = read
        full = value.reshape((1,) * (len(perm) - value.ndim) + value.shape).transpose(_inverse(perm))
        inputs: list[Tensor | None] = [x, x]
        inputs[1 - index] = fixed if value.size == 1 else like(fixed, full)
        return _swap(rewriter, node, inputs, perm)
    return None


def _reduction(rewriter: Rewriter, node: Node) -> str | None:
    read, axes = _before(rewriter, node.inputs[0], node), value_of(node.inputs[1])
    if read is None or axes is None:
        return None
    x, perm = read
    reduced = {int(axis) % len(perm) for axis in axes.flat}
    inner = sorted(perm[axis] for axis in reduced)
    inputs: list[Tensor | None] = [x, constant(f"{node.name}/axes", np.array(inner, np.int32))]
    if node.attributes.keep_dims:
        return _swap(rewriter, node, inputs, perm)
    left = [axis for axis in range(len(perm)) if axis not in inner]
    order = tuple(left.index(perm[axis]) for axis in range(len(perm)) if axis not in reduced)
    if order != tuple(range(len(order))):
        return _swap(rewriter, node, inputs, order)
    rewriter.rewrite(node, inputs=inputs)
    return f"{layer(node)}: {node.op} takes in a TRANSPOSE"


def _transposed_after(rewriter: Rewriter, node: Node) -> bool:
    follower = rewriter.only_consumer(node.outputs[0])
    return follower is not None and follower.op == "TRANSPOSE"


def _softmax(rewriter: Rewriter, node: Node) -> str | None:
    read = _before(rewriter, node.inputs[0], node)
    if read is None or not _transposed_after(rewriter, node) or len(node.inputs) > 1:  # a mask has its own order
        return None
    x, perm = read
    attributes = dataclasses.replace(node.attributes, axis=perm[node.attributes.axis % len(perm)])
    return _swap(rewriter, node, [x], perm, attributes)


def _pad(rewriter: Rewriter, node: Node) -> str | None:
    read, amounts = _before(rewriter, node.inputs[0], node), value_of(node.inputs[1])
    if read is None or amounts is None or not _transposed_after(rewriter, node):
        return None
    x, perm = read
    moved = constant(f"{node.name}/paddings", amounts[list(_inverse(perm))])
    return _swap(rewriter, node, [x, moved, *node.inputs[2:]], perm)


def _concatenation(rewriter: Rewriter, node: Node) -> str | None:
    reads = [_before(rewriter, tensor, node) for tensor in node.inputs]
    if any(read is None for read in reads) or not _transposed_after(rewriter, node):
        return None
    known = [read for read in reads if read is not None]
    perm = known[0][1]
    if any(read[1] != perm for read in known):
        return None
    attributes = dataclasses.replace(node.attributes, axis=perm[node.attributes.axis % len(perm)])
    return _swap(rewriter, node, [x for x, _ in known], perm, attributes)


RULES = {
    "TRANSPOSE": _transpose,
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(REDUCTIONS, _reduction),
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _softmax,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "CONCATENATION": _concatenation,
}

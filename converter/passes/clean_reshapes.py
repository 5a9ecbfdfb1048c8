"""RESHAPE(RESHAPE(x)) -> RESHAPE(x) or x; f(RESHAPE(x)) -> RESHAPE(f(x)) for what works on each element alone, with
constants per channel, with two operands reshaped alike, and for FULLY_CONNECTED before a RESHAPE. EXPAND_DIMS and
SQUEEZE are RESHAPEs too.

Reshapes move towards the outputs, where they meet and cancel: a chain of 1-D convolutions becomes one of 2-D
convolutions, BatchNorm and activation come next to their convolution, and Dense on rank 3 loses the reshapes around
it.
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, like, value_of, varies_by_channel
from converter.elementwise import BINARY, POINTWISE
from converter.rewriter import Rewriter, layer
from converter.sizes import values
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node, Shape, Tensor
from schema.ops.attributes import SqueezeAttributes

RESHAPES = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes():
        if node.op in RESHAPES:
            line = _merge(rewriter, shapes, node) or _simplify(rewriter, shapes, node)
        elif node.op in POINTWISE:
            line = _sink(rewriter, shapes, node)
        elif node.op in BINARY:
            line = (
                _sink_constant(rewriter, shapes, node)
                or _sink_both(rewriter, shapes, node)
                or _sink_beside_expanded(rewriter, shapes, node)
            )
        elif node.op == "FULLY_CONNECTED":
            line = _sink_dense(rewriter, shapes, node)
        else:
            continue
        if line:
            changes.append(line)
    rewriter.commit()
    return changes


def _merge(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    """Two reshapes in a row are one, or none."""
    inner = rewriter.producer(node.inputs[0], *RESHAPES)
    x, out = None if inner is None else inner.inputs[0], node.outputs[0]
    if inner is None or x is None:
        return None
    if shapes.same(x, out):
        return (
            f"{layer(inner)} and {layer(node)}: {inner.op} and {node.op} cancel" if rewriter.bypass(node, x) else None
        )
    target = _target(shapes, out)
    if target is None:
        return None
    before = node.op
    rewriter.rewrite(node, "RESHAPE", [x, constant(f"{node.name}/shape", target)], None)
    return f"{layer(inner)} and {layer(node)}: {inner.op} and {before} merged"


def _simplify(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    """A RESHAPE to a computed shape that only inserts, or only removes, axes of 1 needs no shape arithmetic."""
    x, target = node.inputs[0], node.inputs[1] if node.op == "RESHAPE" else None
    before, after = shapes.dims(x), shapes.dims(node.outputs[0])
    if target is None or target.is_constant or x is None or before is None or after is None:
        return None
    if len(before) == len(after) + 1:
        axis = next(
            (i for i, size in enumerate(before) if size.value == 1 and before[:i] + before[i + 1 :] == after), None
        )
        if axis is not None:
            rewriter.rewrite(node, "SQUEEZE", [x], SqueezeAttributes((axis,)))
            return f"{layer(node)}: RESHAPE became SQUEEZE"
    if len(after) == len(before) + 1:
        axis = next(
            (i for i, size in enumerate(after) if size.value == 1 and after[:i] + after[i + 1 :] == before), None
        )
        if axis is not None:
            rewriter.rewrite(node, "EXPAND_DIMS", [x, constant(f"{node.name}/axis", np.array(axis, np.int32))])
            return f"{layer(node)}: RESHAPE became EXPAND_DIMS"
    return None


def _target(shapes: SymbolicShapes, tensor: Tensor) -> np.ndarray | None:
    """The tensor's shape as RESHAPE's operand, None where more than one dimension is unknown."""
    dims = shapes.dims(tensor)
    sizes = [None, None] if dims is None else values(dims)
    if sizes.count(None) > 1 or (None in sizes and 0 in sizes):
        return None
    return np.array([-1 if size is None else size for size in sizes], np.int32)


def _private_reshape(rewriter: Rewriter, tensor: Tensor | None, reader: Node) -> Node | None:
    """The reshape that makes the tensor for this reader alone, whose result could be reshaped as well."""
    node = rewriter.producer(tensor, *RESHAPES)
    if node is None or tensor is None or varies_by_channel(tensor) or varies_by_channel(reader.outputs[0]):
        return None
    return node if rewriter.only_consumer(tensor) is reader else None


def _swap(rewriter: Rewriter, shapes: SymbolicShapes, node: Node, reshape: Node, inputs: list[Tensor | None]) -> str:
    """The node on these inputs, and behind it the reshape in the node's place."""
    inner = rewriter.add(node.op, inputs, node.attributes, before=node, quantization=node.outputs[0].quantization)
    shapes.assign(inner, shapes.dims(reshape.inputs[0]))
    line = f"{layer(reshape)}: {reshape.op} moved behind {layer(node)} ({node.op})"
    rewriter.rewrite(node, reshape.op, [inner, *reshape.inputs[1:]], reshape.attributes, reshape.name)
    return line


def _sink(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    reshape = _private_reshape(rewriter, node.inputs[0], node)
    return None if reshape is None else _swap(rewriter, shapes, node, reshape, [reshape.inputs[0]])


def _sink_constant(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    for index in (0, 1):
        reshape, value = _private_reshape(rewriter, node.inputs[index], node), value_of(node.inputs[1 - index])
        if reshape is None or value is None or (node.op == "PRELU" and index):
            continue
        x, out, fixed = reshape.inputs[0], reshape.outputs[0], node.inputs[1 - index]
        if x is None or fixed is None or varies_by_channel(fixed) or not shapes.same(out, node.outputs[0]):
            continue
        moved = _through(value, out.shape, x.shape)
        if moved is None:
            continue
        inputs: list[Tensor | None] = [x, x]
        inputs[1 - index] = fixed if moved.shape == value.shape else like(fixed, moved)
        return _swap(rewriter, shapes, node, reshape, inputs)
    return None


def _through(value: np.ndarray, after: Shape | None, before: Shape | None) -> np.ndarray | None:
    """A constant that broadcasts against the shape `after` a reshape, as one against the shape `before`, None where
    there is none.
    """
    if after is None or before is None:
        return None
    if value.size == 1:
        return value.reshape(())
    while value.ndim > 1 and value.shape[0] == 1:
        value = value[0]
    tail = after[len(after) - value.ndim :]
    if before[len(before) - value.ndim :] == tail and None not in tail and value.ndim <= len(before):
        return value
    if value.shape != tail:
        return None
    count = 1
    for taken in range(1, len(before) + 1):
        size = before[-taken]
        if size is None:
            return None
        count *= size
        if count == value.size:
            # A constant per channel is worth more behind the reshape than one that is none before it.
            return value.reshape([size or 0 for size in before[-taken:]]) if taken <= value.ndim else None
    return None


def _sink_both(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    if node.op == "PRELU":
        return None
    first, second = (_private_reshape(rewriter, tensor, node) for tensor in node.inputs)
    if first is None or second is None or first is second:
        return None
    a, b = first.inputs[0], second.inputs[0]
    if a is None or b is None or not shapes.same(a, b) or not shapes.same(first.outputs[0], second.outputs[0]):
        return None
    return _swap(rewriter, shapes, node, first, [a, b])


def _sink_beside_expanded(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    """ADD(SQUEEZE(a), y), y being expanded for others already -> SQUEEZE(ADD(a, EXPAND_DIMS(y))): residual 1-D
    convolutions.
    """
    for index in (0, 1):
        squeeze, y = _private_reshape(rewriter, node.inputs[index], node), node.inputs[1 - index]
        if squeeze is None or squeeze.op != "SQUEEZE" or y is None or node.op == "PRELU":
            continue
        a = squeeze.inputs[0]
        expanded = next((n for n in rewriter.consumers(y) if n.op == "EXPAND_DIMS"), None)
        if a is None or expanded is None or not shapes.same(a, expanded.outputs[0]):
            continue
        if not shapes.same(y, node.outputs[0]):
            continue
        quantization = expanded.outputs[0].quantization
        other = rewriter.add("EXPAND_DIMS", expanded.inputs, before=node, name=expanded.name, quantization=quantization)
        inputs: list[Tensor | None] = [other, other]
        inputs[index] = a
        return _swap(rewriter, shapes, node, squeeze, inputs)
    return None


def _sink_dense(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> str | None:
    """FULLY_CONNECTED works on the last axis: a reshape of the others may follow it. Done where one follows already."""
    follower = rewriter.only_consumer(node.outputs[0])
    reshape = _private_reshape(rewriter, node.inputs[0], node)
    if reshape is None or follower is None or follower.op not in RESHAPES or not node.attributes.keep_num_dims:
        return None
    x, y = reshape.inputs[0], reshape.outputs[0]
    before, after, out = shapes.dims(x), shapes.dims(y), shapes.dims(node.outputs[0])
    if x is None or not before or not after or not out or before[-1] != after[-1] or before[-1].value is None:
        return None
    target = _target(shapes, node.outputs[0])
    if target is None:
        return None
    inputs = [x, *node.inputs[1:]]
    inner = rewriter.add(node.op, inputs, node.attributes, before=node, quantization=node.outputs[0].quantization)
    shapes.assign(inner, (*before[:-1], out[-1]))
    line = f"{layer(reshape)}: {reshape.op} moved behind {layer(node)} ({node.op})"
    rewriter.rewrite(node, "RESHAPE", [inner, constant(f"{reshape.name}/shape", target)], None, reshape.name)
    return line

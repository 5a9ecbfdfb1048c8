"""RESHAPE(x, PACK(SHAPE(x)[0], n)) -> RESHAPE(x, [-1, n]), and any arithmetic on shapes whose result is known ->
constant.

One unknown dimension of a RESHAPE is what is left of the others, so that a model whose batch alone is unknown keeps
no shape arithmetic. Sizes that stay unknown and equal a size of one of the graph's inputs are taken from that input,
and the shape of a computed tensor from one that is there in any case: Keras computes a step of masked recurrent layers
for its shape.
"""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from converter.constants import constant
from converter.rewriter import Rewriter, layer
from converter.sizes import values
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node
from schema.ops.attributes import StridedSliceAttributes

_SHRINK = StridedSliceAttributes(shrink_axis_mask=1)


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes():
        if node.op == "RESHAPE" and _fold_reshape(rewriter, shapes, node):
            changes.append(f"{layer(node)}: shape is {_text(node)}")
        elif _fold_value(rewriter, shapes, node):
            changes.append(f"{layer(node)}: {node.op} of a known shape computed")
        elif _take_from_input(rewriter, shapes, node):
            changes.append(f"{layer(node)}: size taken from the model's input")
        elif _take_from_another(rewriter, shapes, node):
            changes.append(f"{layer(node)}: shape taken from a tensor that nothing has to compute")
    rewriter.commit()
    return changes


def _fold_reshape(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> bool:
    x, target = node.inputs
    if x is None or target is None or target.is_constant:
        return False
    dims = shapes.dims(node.outputs[0])
    if dims is None:
        return False
    sizes = values(dims)
    unknown = sizes.count(None)
    if unknown > 1 or (unknown == 1 and 0 in sizes):
        return False
    array = np.array([-1 if size is None else size for size in sizes], target.dtype)
    rewriter.rewrite(node, inputs=[x, constant(f"{node.name}/shape", array)])
    return True


def _fold_value(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> bool:
    if any(rewriter.is_output(tensor) or tensor.dtype.kind != "i" for tensor in node.outputs):
        return False
    arrays = []
    for tensor in node.outputs:
        elements = shapes.elements(tensor)
        sizes = [] if elements is None else values(list(elements.flat))
        if elements is None or None in sizes:
            return False
        arrays.append(np.array(sizes).reshape(elements.shape))
    rewriter.make_constant(node, arrays)
    return True


def _take_from_input(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> bool:
    """One element of the SHAPE of a computed tensor, equal to a size of a graph input -> that element of the input's
    SHAPE.
    """
    shape = rewriter.producer(node.inputs[0], "SHAPE") if node.op == "STRIDED_SLICE" else None
    if shape is None or shape.inputs[0] in rewriter.graph.inputs:
        return False
    elements = shapes.elements(node.outputs[0])
    if elements is None or elements.ndim:
        return False
    for tensor in rewriter.graph.inputs:
        for axis, size in enumerate(shapes.dims(tensor) or ()):
            if size == elements[()]:
                of_input = rewriter.add("SHAPE", [tensor], shape.attributes, before=node)
                bounds = [constant(f"{node.name}/{n}", np.array([v], np.int32)) for n, v in _slice(axis)]
                rewriter.rewrite(node, inputs=[of_input, *bounds], attributes=_SHRINK)
                return True
    return False


def _take_from_another(rewriter: Rewriter, shapes: SymbolicShapes, node: Node) -> bool:
    """SHAPE(computed) -> SHAPE(of an input or of a FILL before it, of the same shape), SHAPE(FILL(dims, .)) -> dims."""
    x = node.inputs[0] if node.op == "SHAPE" else None
    if x is None or x in rewriter.graph.inputs:
        return False
    fill = rewriter.producer(x, "FILL")
    if fill is not None:
        dims = fill.inputs[0]
        return dims is not None and dims.dtype == node.outputs[0].dtype and rewriter.bypass(node, dims)
    fills = [
        other.outputs[0]
        for other in takewhile(lambda other: other is not node, rewriter.graph.nodes)
        if other.op == "FILL"
    ]
    for tensor in (*rewriter.graph.inputs, *fills):
        if shapes.same(tensor, x):
            rewriter.rewrite(node, inputs=[tensor])
            return True
    return False


def _slice(axis: int) -> list[tuple[str, int]]:
    return [("begin", axis), ("end", axis + 1), ("strides", 1)]


def _text(node: Node) -> str:
    target = node.inputs[1]
    assert target is not None and target.value is not None
    return "x".join("?" if d < 0 else str(d) for d in target.value)

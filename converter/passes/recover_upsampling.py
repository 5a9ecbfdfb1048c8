"""RESHAPE(TILE(EXPAND_DIMS(x))) along H, then along W -> RESIZE_NEAREST_NEIGHBOR(x), as Keras 3 spells UpSampling2D:
each row and each column is repeated. The size is SHAPE(x)[1:3] times the factors, a constant where H and W are known.
"""

from __future__ import annotations

import numpy as np

from converter.constants import constant, value_of
from converter.rewriter import Rewriter, layer
from converter.sizes import Size
from converter.symbolic_shapes import SymbolicShapes
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import ArithmeticAttributes, DTypeAttributes, ResizeAttributes, StridedSliceAttributes


def run(graph: Graph) -> list[str]:
    rewriter, shapes, changes = Rewriter(graph), SymbolicShapes(graph), []
    for node in rewriter.nodes("RESHAPE"):
        columns = _repeat(rewriter, shapes, node.outputs[0])
        rows = None if columns is None or columns[1] != 2 else _repeat(rewriter, shapes, columns[0])
        if columns is None or rows is None or rows[1] != 1 or len(rows[0].shape or ()) != 4:
            continue
        factors = (rows[2], columns[2])
        size = _size(rewriter, node, rows[0], factors)
        rewriter.rewrite(node, "RESIZE_NEAREST_NEIGHBOR", [rows[0], size], ResizeAttributes())
        changes.append(f"{layer(node)}: upsampling by {factors[0]}x{factors[1]} recovered")
    rewriter.commit()
    return changes


def _repeat(rewriter: Rewriter, shapes: SymbolicShapes, tensor: Tensor) -> tuple[Tensor, int, int] | None:
    """(x, axis, times) where the tensor holds each index of x's axis `times` times in a row."""
    reshape = rewriter.producer(tensor, "RESHAPE")
    tile = None if reshape is None else rewriter.producer(reshape.inputs[0], "TILE")
    expand = None if tile is None else rewriter.producer(tile.inputs[0], "EXPAND_DIMS", "RESHAPE")
    x = None if expand is None else expand.inputs[0]
    multiples = None if tile is None else value_of(tile.inputs[1])
    if x is None or expand is None or multiples is None:
        return None
    before, after = shapes.dims(x), shapes.dims(tensor)
    if before is None or after is None:
        return None
    tiled = [axis for axis, times in enumerate(multiples) if times != 1]
    if len(tiled) != 1 or len(multiples) != len(before) + 1 or len(after) != len(before):
        return None
    axis, times = tiled[0] - 1, int(multiples[tiled[0]])
    inserted = (*before[: axis + 1], Size.number(1), *before[axis + 1 :])
    repeated = (*before[:axis], before[axis] * Size.number(times), *before[axis + 1 :])
    return (x, axis, times) if shapes.dims(expand.outputs[0]) == inserted and after == repeated else None


def _size(rewriter: Rewriter, node: Node, x: Tensor, factors: tuple[int, int]) -> Tensor:
    """The tensor (H * factor, W * factor)."""
    times = constant(f"{node.name}/factors", np.array(factors, np.int32))
    height, width = (x.shape or ())[1:3]
    if height is not None and width is not None:
        return constant(f"{node.name}/size", np.array([height * factors[0], width * factors[1]], np.int32))
    shape = rewriter.add("SHAPE", [x], DTypeAttributes(np.dtype(np.int32)), before=node)
    bounds = [constant(f"{node.name}/bound", np.array([at], np.int32)) for at in (1, 3, 1)]
    sliced = rewriter.add("STRIDED_SLICE", [shape, *bounds], StridedSliceAttributes(), before=node)
    return rewriter.add("MUL", [sliced, times], ArithmeticAttributes(), before=node)

"""Shapes and dtypes of every tensor of a graph, and the values of its shape arithmetic.

The same walk serves the converter (batch unknown), the verifier (nothing known but constants) and the planner (all
known).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from schema import ops
from schema.errors import ShapeError, XnnError
from schema.graph import Graph, Node, Shape, Tensor, TensorType
from schema.limits import MAX_TENSOR_BYTES

MAX_RANK = 8
FOLD_LIMIT = 1024  # elements: enough for shape arithmetic, never for weights

# Which input of an op is the shape of its output.
SHAPE_OPERAND = {"RESHAPE": 1, "BROADCAST_TO": 1, "FILL": 0, "TRANSPOSE_CONV": 0, "CONV_3D_TRANSPOSE": 0}
# Ops that only move the elements of these inputs: an element's being known moves along.
MOVES: dict[str, tuple[int, ...] | None] = {
    "RESHAPE": (0,),
    "SQUEEZE": (0,),
    "EXPAND_DIMS": (0,),
    "STRIDED_SLICE": (0,),
    "SLICE": (0,),
    "GATHER": (0,),
    "CAST": (0,),
    "UNPACK": (0,),
    "SPLIT": (1,),
    "SPLIT_V": (0,),
    "PACK": None,  # all inputs
    "CONCATENATION": None,
}
ARITHMETIC = ("ADD", "SUB", "MUL")
CONTROL_FLOW = ("IF", "WHILE")
"""Ops that are never run to learn a value: they may take any time."""


@dataclass
class Inference:
    """What is known of each tensor.

    types: of all tensors. values: whole values (constants and folded shape arithmetic). partial: (value, known) of
    integer tensors of which only some elements are known, such as the shape (batch, 7, 7, 32); where `known` is
    False the value is 0.
    """

    types: dict[Tensor, TensorType] = field(default_factory=dict)
    values: dict[Tensor, np.ndarray] = field(default_factory=dict)
    partial: dict[Tensor, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def value(self, tensor: Tensor | None) -> np.ndarray | None:
        if tensor is None:
            return None
        return tensor.value if tensor.is_constant else self.values.get(tensor)

    def is_known(self, tensor: Tensor | None) -> bool:
        """Whether there is a value, which is not made for that."""
        return tensor is not None and (tensor.is_constant or tensor in self.values)

    def small_value(self, tensor: Tensor | None) -> np.ndarray | None:
        """The value, but not of constants of weights' size: inference needs none, and expanding them takes time."""
        if tensor is not None and tensor.is_constant and _count(tensor.type) > FOLD_LIMIT:
            return None
        return self.value(tensor)

    def elements(self, tensor: Tensor | None) -> tuple[np.ndarray, np.ndarray] | None:
        """(value, known) of a tensor of which something is known."""
        if tensor is None:
            return None
        value = self.small_value(tensor)
        return self.partial.get(tensor) if value is None else (value, np.ones(value.shape, bool))


def place(node: Node, error: XnnError) -> XnnError:
    """The same error, naming the node."""
    return type(error)(f"{node}: {error}")


def infer(graph: Graph, input_shapes: Sequence[Shape] | None = None) -> Inference:
    """Types of all tensors when the inputs have these shapes (default: the declared ones).

    Raises ShapeError or UnsupportedError, naming the node, for inputs that do not fit together.
    """
    result = Inference()
    for index, tensor in enumerate(graph.inputs):
        shape = tensor.shape if input_shapes is None else input_shapes[index]
        result.types[tensor] = TensorType(shape, tensor.dtype, tensor.quantization)
    for node in graph.nodes:
        try:
            infer_node(node, result)
        except XnnError as error:
            raise place(node, error) from None
    for tensor in graph.outputs:
        if tensor not in result.types:
            result.types[tensor] = tensor.type
    return result


def annotate(graph: Graph) -> Inference:
    """Set the shape of every computed tensor to what is inferred from the graph's inputs; of graphs that its nodes run
    as well, from what they declare themselves.
    """
    result = infer(graph)
    for node in graph.nodes:
        for tensor in node.outputs:
            tensor.shape = result.types[tensor].shape
        for inner in node.subgraphs.values():
            annotate(inner)
    return result


def infer_node(node: Node, result: Inference) -> None:
    """Add what is known of one node's outputs, its inputs being in `result` already."""
    op = ops.get(node.op)
    for tensor in node.inputs:
        if tensor is not None and tensor not in result.types:
            result.types[tensor] = tensor.type
    types = [None if tensor is None else result.types[tensor] for tensor in node.inputs]
    values = [result.small_value(tensor) for tensor in node.inputs]
    inferred = op.infer(node.attributes, types, values)
    if len(inferred) != len(node.outputs):
        raise ShapeError(f"{len(node.outputs)} outputs where {len(inferred)} are computed")
    inferred = _refine(node, inferred, result)
    for tensor, kind in zip(node.outputs, inferred, strict=True):
        if kind.dtype != tensor.dtype:
            raise ShapeError(f"output '{tensor.name}' is declared {tensor.dtype}, computed {kind.dtype}")
        _check_size(kind)
        result.types[tensor] = TensorType(kind.shape, kind.dtype, tensor.quantization)
    _fold(node, op, types, values, [result.types[tensor] for tensor in node.outputs], result)


def _check_size(kind: TensorType) -> None:
    if kind.shape is None:
        return
    if len(kind.shape) > MAX_RANK:
        raise ShapeError(f"{len(kind.shape)} dimensions are more than the {MAX_RANK} there may be")
    if any(dim is not None and dim < 0 for dim in kind.shape):
        raise ShapeError(f"the shape {kind.shape} is negative")
    size = size_in_bytes(kind)
    if size > MAX_TENSOR_BYTES:
        raise ShapeError(f"{kind} takes {size} bytes")


def size_in_bytes(kind: TensorType) -> int:
    """What the known dimensions come to, those of 0 counted as 1: numpy refuses products beyond 2^63 even then."""
    return kind.dtype.itemsize * math.prod(max(dim, 1) for dim in kind.shape or () if dim is not None)


def _refine(node: Node, inferred: list[TensorType], result: Inference) -> list[TensorType]:
    """Known elements of a shape operand are known dimensions of the output."""
    operand = SHAPE_OPERAND.get(node.op)
    if operand is None or inferred[0].is_static:
        return inferred
    elements = result.elements(node.inputs[operand])
    if elements is None or elements[0].ndim != 1:
        return inferred
    sizes, known = elements
    dims: list[int | None] = [int(size) if k and size >= 0 else None for size, k in zip(sizes, known, strict=True)]
    before = inferred[0].shape
    if before is not None and len(before) == len(dims):
        dims = [b if d is None else d for b, d in zip(before, dims, strict=True)]
    return [TensorType(tuple(dims), inferred[0].dtype)]


def _fold(node: Node, op, types, values, inferred: list[TensorType], result: Inference) -> None:
    """Compute what small tensors are, wholly or in part, where it is known."""
    if node.op == "SHAPE":
        shape = types[0].shape
        if shape is not None:
            dtype = inferred[0].dtype
            known = np.array([d is not None for d in shape], bool)
            _record(result, node.outputs[0], np.array([d or 0 for d in shape], dtype), known)
        return
    if node.op == "RANK":
        if types[0].rank is not None:
            result.values[node.outputs[0]] = np.array(types[0].rank, inferred[0].dtype)
        return
    if node.op in CONTROL_FLOW or any(not k.is_static or _count(k) > FOLD_LIMIT for k in inferred):
        return
    given = [v is not None or t is None for v, t in zip(values, node.inputs, strict=True)]
    if all(given) and node.inputs:
        for tensor, value in zip(node.outputs, ops.run(op, node.attributes, values, types, inferred), strict=True):
            result.values[tensor] = value
    elif node.op in MOVES:
        moved = MOVES[node.op]
        moved = tuple(range(len(node.inputs))) if moved is None else moved
        elements = [_elements_or_unknown(t, result) if i in moved else None for i, t in enumerate(node.inputs)]
        if all(given[i] or elements[i] is not None for i in range(len(given))):
            arrays = [values[i] if e is None else e[0] for i, e in enumerate(elements)]
            masks = [values[i] if e is None else e[1].astype(e[0].dtype) for i, e in enumerate(elements)]
            moved_values = ops.run(op, node.attributes, arrays, types, inferred)
            moved_masks = ops.run(op, node.attributes, masks, types, inferred)
            for tensor, value, mask in zip(node.outputs, moved_values, moved_masks, strict=True):
                _record(result, tensor, value, mask.astype(bool))
    elif node.op in ARITHMETIC:
        a, b = (result.elements(t) for t in node.inputs)
        if a is not None and b is not None:
            value = ops.run(op, node.attributes, [a[0], b[0]], types, inferred)[0]
            _record(result, node.outputs[0], value, np.broadcast_to(a[1] & b[1], value.shape))


def _elements_or_unknown(tensor: Tensor | None, result: Inference) -> tuple[np.ndarray, np.ndarray] | None:
    """(value, known) of a small integer tensor, nothing known of one that is computed from data."""
    elements = result.elements(tensor)
    if elements is not None or tensor is None:
        return elements
    kind = result.types[tensor]
    if not kind.is_static or kind.dtype.kind not in "iu" or _count(kind) > FOLD_LIMIT:
        return None
    return np.zeros(kind.shape, kind.dtype), np.zeros(kind.shape, bool)


def _record(result: Inference, tensor: Tensor, value: np.ndarray, known: np.ndarray) -> None:
    if known.all():
        result.values[tensor] = value
    else:
        result.partial[tensor] = (np.where(known, value, 0).astype(value.dtype), known)


def _count(kind: TensorType) -> int:
    count = 1
    for dim in kind.shape or ():
        count *= dim or 0
    return count

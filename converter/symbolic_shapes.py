"""What is known of shapes while some dimensions are not: every dimension as a polynomial of unknowns.

Type inference says "unknown" for the batch and for whatever depends on it. Rewrites need more: that two unknown sizes
are the *same*, or that a computed shape is (batch, 7, 7, 32). Here unknown sizes of the graph's inputs are symbols,
and what cannot be expressed (a floor division, a size that depends on data) becomes a new symbol, the same one for
the same formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from converter.shape_rules import RULES
from converter.sizes import Guess, Size, Sizes, product, values
from schema import ops
from schema.graph import Graph, Node, Tensor
from schema.inference import MOVES

MAX_ELEMENTS = 64
"""Integer tensors up to this many elements are followed: shapes, paddings, axes."""

ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "FLOOR_DIV": lambda a, b: a // b,
    "FLOOR_MOD": lambda a, b: a % b,
}


class SymbolicShapes:
    """Dimensions of the tensors of an annotated graph, and elements of its small integer tensors, as `Size`s.

    Of tensors made after this was built it knows what their shape says, and what is assigned.
    """

    def __init__(self, graph: Graph):
        self._graph: Graph | None = graph  # until it is looked at for the first time
        self._dims: dict[Tensor, Sizes | None] = {}
        self._elements: dict[Tensor, np.ndarray] = {}  # object arrays of Size

    def dims(self, tensor: Tensor | None) -> Sizes | None:
        """The tensor's dimensions, None where not even the rank is known."""
        if tensor is None:
            return None
        self._look()
        if tensor not in self._dims:
            self._dims[tensor] = self._known(tensor, ("tensor", id(tensor)))
        return self._dims[tensor]

    def elements(self, tensor: Tensor | None) -> np.ndarray | None:
        """The elements of a small integer tensor as an object array of `Size`, None for other tensors."""
        if tensor is None:
            return None
        self._look()
        if tensor.is_constant and tensor not in self._elements:
            array = tensor.value
            if array is not None and array.dtype.kind == "i" and array.size <= MAX_ELEMENTS:
                self._elements[tensor] = _sizes(array)
        return self._elements.get(tensor)

    def same(self, a: Tensor, b: Tensor) -> bool:
        """Whether two tensors surely have the same shape."""
        if a.type.is_static and b.type.is_static:
            return a.shape == b.shape
        dims = self.dims(a)
        return dims is not None and dims == self.dims(b)

    def assign(self, tensor: Tensor, dims: Sizes | None) -> None:
        """Tell the dimensions of a tensor made after this was built."""
        self._look()
        self._dims[tensor] = dims

    # ---- inside ----

    def _look(self) -> None:
        """Walk the graph once, when first asked: many passes find nothing to ask about."""
        if self._graph is None:
            return
        graph, self._graph = self._graph, None
        for index, tensor in enumerate(graph.inputs):
            self._dims[tensor] = self._known(tensor, ("input", index))
        for node in graph.nodes:
            self._follow(node)

    def _known(self, tensor: Tensor, key: tuple, guess: Guess | None = None) -> Sizes | None:
        """The inferred dimensions; those that inference does not know from `guess`, or else symbols made of the key."""
        shape = tensor.shape
        if shape is None:
            if guess is None:
                return None
            shape = (None,) * len(guess)
        if guess is None or len(guess) != len(shape):
            guess = (None,) * len(shape)
        known = [g if d is None else Size.number(d) for d, g in zip(shape, guess, strict=True)]
        return tuple(Size.symbol((*key, axis)) if size is None else size for axis, size in enumerate(known))

    def _follow(self, node: Node) -> None:
        for tensor, array in zip(node.outputs, self._evaluate(node), strict=False):
            self._elements[tensor] = array
        if all(tensor.shape is not None and None not in tensor.shape for tensor in node.outputs):
            return
        rule = RULES.get(node.op)
        inputs = [self.dims(tensor) for tensor in node.inputs]
        guess = rule(self, node, inputs) if rule is not None else None
        for tensor in node.outputs:
            self._dims[tensor] = self._known(tensor, ("tensor", id(tensor)), guess)

    def _evaluate(self, node: Node) -> list[np.ndarray]:
        """The outputs' elements, [] where they are not followed."""
        output = node.outputs[0]
        if node.op == "SHAPE":
            dims = self.dims(node.inputs[0])
            return [] if dims is None else [_array(dims, (len(dims),))]
        if output.dtype.kind != "i" or not node.inputs:
            return []
        arrays = [self.elements(tensor) for tensor in node.inputs]
        if any(array is None for array in arrays):
            return []
        if node.op in MOVES:
            return self._move(node, arrays)
        if node.op in ARITHMETIC:
            a, b = np.broadcast_arrays(*arrays)
            combine = ARITHMETIC[node.op]
            return [_array([combine(x, y) for x, y in zip(a.flat, b.flat, strict=True)], a.shape)]
        if node.op == "REDUCE_PROD" and arrays[0].ndim == 1 and output.shape is not None:
            return [_array([product(arrays[0])], output.shape)]
        return []

    def _move(self, node: Node, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Ask the op's reference where each element goes: it is run on the elements' numbers."""
        moved = MOVES[node.op] or range(len(arrays))
        pool: list[Size] = []
        inputs = []
        for index, array in enumerate(arrays):
            if index in moved:
                numbers = np.arange(len(pool), len(pool) + array.size).reshape(array.shape)
                pool.extend(array.flat)
            else:
                known = values(list(array.flat))
                if None in known:
                    return []
                numbers = np.array(known).reshape(array.shape)
            inputs.append(numbers.astype(node.inputs[index].dtype))
        types = [tensor.type for tensor in node.inputs]
        if any(not tensor.type.is_static for tensor in node.outputs):
            return []
        outputs = ops.get(node.op).reference(node.attributes, inputs, types, [t.type for t in node.outputs])
        return [_array([pool[int(i)] for i in out.flat], out.shape) for out in outputs]


def _array(sizes: Sequence[Size], shape: Sequence[int]) -> np.ndarray:
    array = np.empty(len(sizes), object)
    array[:] = sizes
    return array.reshape(tuple(shape))


def _sizes(array: np.ndarray) -> np.ndarray:
    return _array([Size.number(v) for v in array.flat], array.shape)

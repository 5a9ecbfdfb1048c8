"""What is known of shapes while some dimensions are not: every dimension as a polynomial of unknowns.

Type inference says "unknown" for the batch and for whatever depends on it. Rewrites need more: that two unknown sizes
are the *same*, or that a computed shape is (batch, 7, 7, 32). Here unknown sizes of the graph's inputs are symbols,
and what cannot be expressed (a floor division, a size that depends on data) becomes a new symbol, the same one for
the same formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from schema import ops
from schema.graph import Graph, Node, Tensor
from schema.inference import MOVES
from schema.ops import strided_slice
from schema.ops.convolution import along, extent

MAX_ELEMENTS = 64
"""Integer tensors up to this many elements are followed: shapes, paddings, axes."""


class Size:
    """A polynomial with integer coefficients over symbols. Immutable and hashable; a number has no symbols."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[tuple, int]):
        self.terms = {symbols: factor for symbols, factor in terms.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))

    @staticmethod
    def number(value: int) -> Size:
        return _number(int(value))

    @staticmethod
    def symbol(key: Any) -> Size:
        return Size({(key,): 1})

    @property
    def value(self) -> int | None:
        """The number, None where a symbol is in it."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def __eq__(self, other) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for symbols, factor in other.terms.items():
            terms[symbols] = terms.get(symbols, 0) + factor
        return Size(terms)

    def __mul__(self, other: Size) -> Size:
        terms: dict[tuple, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                symbols = tuple(sorted(a + b, key=hash))
                terms[symbols] = terms.get(symbols, 0) + x * y
        return Size(terms)

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.number(-1)

    def __floordiv__(self, other: Size) -> Size:
        """Rounded down as Python does; exact where the divisor is one term that all terms hold."""
        a, b = self.value, other.value
        if a is not None and b:
            return Size.number(a // b)
        if len(other.terms) == 1:
            ((divisor, factor),) = other.terms.items()
            quotient: dict[tuple, int] = {}
            for symbols, x in self.terms.items():
                rest = list(symbols)
                try:
                    for symbol in divisor:
                        rest.remove(symbol)
                except ValueError:
                    break
                if x % factor:
                    break
                quotient[tuple(rest)] = x // factor
            else:
                return Size(quotient)
        return Size.symbol(("//", self, other))

    def __mod__(self, other: Size) -> Size:
        a, b = self.value, other.value
        if a is not None and b:
            return Size.number(a % b)
        return Size.symbol(("%", self, other))

    def __repr__(self) -> str:
        return " + ".join("*".join(map(str, (factor, *symbols))) for symbols, factor in self.terms.items()) or "0"


@lru_cache(maxsize=4096)
def _number(value: int) -> Size:
    return Size({(): value})


Sizes = tuple[Size, ...]
Guess = tuple[Size | None, ...]
"""Dimensions, None where a rule cannot tell."""
ONE = Size.number(1)


def product(sizes: Iterable[Size]) -> Size:
    return math.prod(sizes, start=ONE)


def values(sizes: Sequence[Size]) -> list[int | None]:
    """Each size's number, None for those that hold a symbol."""
    return [size.value for size in sizes]


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


ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "FLOOR_DIV": lambda a, b: a // b,
    "FLOOR_MOD": lambda a, b: a % b,
}

# ---- dimensions of outputs, op by op: rule(shapes, node, dims of the inputs) -> dims or None ----

Rule = Callable[["SymbolicShapes", Node, "list[Sizes | None]"], "Guess | None"]


def _same(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    return inputs[0]


def _broadcast(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    known = [dims for dims in inputs if dims is not None]
    if len(known) != len(inputs):
        return None
    rank = max(map(len, known))
    result: list[Size | None] = []
    for axis in range(-rank, 0):
        sizes = {dims[axis] for dims in known if len(dims) >= -axis} - {ONE}
        result.append(None if len(sizes) > 1 else sizes.pop() if sizes else ONE)
    return tuple(result)


def _window(size: Size, padding: str, pads: Sequence[int], reach: int, stride: int) -> Size:
    if padding == "SAME":
        return size if stride == 1 else (size + Size.number(stride - 1)) // Size.number(stride)
    free = size + Size.number(sum(pads) - reach)
    return free + ONE if stride == 1 else free // Size.number(stride) + ONE


def _windows(axes: str, kernel: Callable[[Node], Sequence[int] | None]) -> Rule:
    def rule(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
        x, sizes, a = inputs[0], kernel(node), node.attributes
        if x is None or sizes is None:
            return None
        strides, dilations = along(a, "stride", axes), along(a, "dilation", axes)
        spatial = [
            _window(x[1 + i], a.padding, a.pads[2 * i : 2 * i + 2], extent(sizes[i], dilations[i]), strides[i])
            for i in range(len(axes))
        ]
        return (x[0], *spatial, None)

    return rule


def _kernel(first: int, count: int) -> Callable[[Node], Sequence[int] | None]:
    def kernel(node: Node) -> Sequence[int] | None:
        weights = node.inputs[1]
        shape = None if weights is None else weights.shape
        return None if shape is None or None in shape else shape[first : first + count]  # type: ignore[return-value]

    return kernel


def _filter(axes: str) -> Callable[[Node], Sequence[int]]:
    return lambda node: along(node.attributes, "filter", axes)


def _fully_connected(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    if inputs[0] is None or not node.attributes.keep_num_dims:
        return None
    return (*inputs[0][:-1], None)


def _operand(index: int) -> Rule:
    def rule(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
        elements = shapes.elements(node.inputs[index])
        return None if elements is None or elements.ndim != 1 else tuple(elements)

    return rule


def _reshape(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    target = _operand(1)(shapes, node, inputs)
    if target is None:
        return None
    free = [axis for axis, size in enumerate(target) if size.value == -1]
    if not free:
        return target
    if inputs[0] is None:
        return None
    rest = product(size for axis, size in enumerate(target) if axis != free[0])
    return (*target[: free[0]], product(inputs[0]) // rest, *target[free[0] + 1 :])


def _expand_dims(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, axis = inputs[0], node.inputs[1].value if node.inputs[1] is not None else None
    if x is None or axis is None:
        return None
    at = int(axis.reshape(())) % (len(x) + 1)
    return (*x[:at], ONE, *x[at:])


def _squeeze(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x = inputs[0]
    if x is None:
        return None
    axes = {axis % len(x) for axis in node.attributes.axes}
    if not axes:
        if None in values(x):
            return None
        axes = {i for i, size in enumerate(x) if size == ONE}
    return tuple(size for i, size in enumerate(x) if i not in axes)


def _transpose(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, perm = inputs[0], node.inputs[1].value if node.inputs[1] is not None else None
    return None if x is None or perm is None else tuple(x[int(p)] for p in perm)


def _reduce(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, axes = inputs[0], node.inputs[1].value if node.inputs[1] is not None else None
    if x is None or axes is None:
        return None
    reduced = {int(axis) % len(x) for axis in axes.reshape(-1)}
    if node.attributes.keep_dims:
        return tuple(ONE if i in reduced else size for i, size in enumerate(x))
    return tuple(size for i, size in enumerate(x) if i not in reduced)


def _pad(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, pads = inputs[0], shapes.elements(node.inputs[1])
    if x is None or pads is None:
        return None
    return tuple(size + before + after for size, (before, after) in zip(x, pads, strict=True))


def _concatenation(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    known = [dims for dims in inputs if dims is not None]
    if len(known) != len(inputs):
        return None
    axis = node.attributes.axis % len(known[0])
    joined = sum((dims[axis] for dims in known[1:]), known[0][axis])
    return (*known[0][:axis], joined, *known[0][axis + 1 :])


def _slice(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, begin, size = inputs[0], shapes.elements(node.inputs[1]), shapes.elements(node.inputs[2])
    if x is None or begin is None or size is None:
        return None
    # A size of -1 is all that is left.
    return tuple(n - first if taken.value == -1 else taken for n, first, taken in zip(x, begin, size, strict=True))


def _strided_slice(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, strides = inputs[0], shapes.elements(node.inputs[3])
    if x is None or strides is None:
        return None
    sizes, result = iter(x), []
    for axis in strided_slice.axes(node.attributes, len(strides), len(x)):
        if axis.kind == "new":
            result.append(ONE)
            continue
        size = next(sizes)
        whole = axis.kind == "whole" or (axis.begin_masked and axis.end_masked and strides[axis.entry].value in (1, -1))
        if axis.kind != "shrink":
            result.append(size if whole else None)
    return tuple(result)


def _split(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, axis = inputs[1], node.inputs[0].value if node.inputs[0] is not None else None
    if x is None or axis is None:
        return None
    at = int(axis.reshape(())) % len(x)
    return (*x[:at], x[at] // Size.number(node.attributes.num), *x[at + 1 :])


def _tile(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, multiples = inputs[0], shapes.elements(node.inputs[1])
    return None if x is None or multiples is None else tuple(a * b for a, b in zip(x, multiples, strict=True))


def _batch_matmul(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    a, b = inputs
    if a is None or b is None or min(len(a), len(b)) < 2:
        return None
    lead = _broadcast(shapes, node, [a[:-2], b[:-2]])
    attributes = node.attributes
    rows, columns = a[-1 if attributes.adj_x else -2], b[-2 if attributes.adj_y else -1]
    return None if lead is None else (*lead, rows, columns)


def _space_to_batch(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, block, pads = inputs[0], shapes.elements(node.inputs[1]), shapes.elements(node.inputs[2])
    if x is None or block is None or pads is None:
        return None
    spatial = [(size + p[0] + p[1]) // b for size, p, b in zip(x[1:], pads, block, strict=False)]
    return (x[0] * product(block), *spatial, *x[1 + len(block) :])


def _batch_to_space(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, block, crops = inputs[0], shapes.elements(node.inputs[1]), shapes.elements(node.inputs[2])
    if x is None or block is None or crops is None:
        return None
    spatial = [size * b - c[0] - c[1] for size, c, b in zip(x[1:], crops, block, strict=False)]
    return (x[0] // product(block), *spatial, *x[1 + len(block) :])


def _resize(shapes: SymbolicShapes, node: Node, inputs: list[Sizes | None]) -> Guess | None:
    x, size = inputs[0], shapes.elements(node.inputs[1])
    return None if x is None or size is None else (x[0], *size, x[3])


_UNARY = """
ABS NEG SIGN EXP EXPM1 LOG LOG1P SQRT RSQRT SQUARE RECIPROCAL SIN COS ERF FLOOR CEIL ROUND LOGICAL_NOT RELU
RELU6 RELU_N1_TO_1 CLAMP LEAKY_RELU PRELU ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS SOFTSIGN
SOFTMAX LOG_SOFTMAX L2_NORMALIZATION CUMSUM REVERSE_V2 CAST QUANTIZE DEQUANTIZE
""".split()
_BINARY = """
ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW FLOOR_DIV FLOOR_MOD EQUAL NOT_EQUAL GREATER
GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR SELECT_V2
""".split()

RULES: dict[str, Rule] = {
    **dict.fromkeys(_UNARY, _same),
    **dict.fromkeys(_BINARY, _broadcast),
    **dict.fromkeys("MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL".split(), _reduce),
    "CONV_2D": _windows("hw", _kernel(1, 2)),
    "DEPTHWISE_CONV_2D": _windows("hw", _kernel(1, 2)),
    "CONV_3D": _windows("dhw", _kernel(0, 3)),
    "AVERAGE_POOL_2D": _windows("hw", _filter("hw")),
    "MAX_POOL_2D": _windows("hw", _filter("hw")),
    "AVERAGE_POOL_3D": _windows("dhw", _filter("dhw")),
    "MAX_POOL_3D": _windows("dhw", _filter("dhw")),
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "TRANSPOSE_CONV": _operand(0),
    "CONV_3D_TRANSPOSE": _operand(0),
    "FILL": _operand(0),
    "BROADCAST_TO": _operand(1),
    "RESHAPE": _reshape,
    "EXPAND_DIMS": _expand_dims,
    "SQUEEZE": _squeeze,
    "TRANSPOSE": _transpose,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "CONCATENATION": _concatenation,
    "TILE": _tile,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "SPLIT": _split,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
}

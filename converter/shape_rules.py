"""Dimensions of outputs, op by op, as sizes of the inputs: what type inference cannot say while sizes are unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from converter.sizes import ONE, Guess, Size, Sizes, product, values
from schema.graph import Node
from schema.ops import strided_slice
from schema.ops.windows import along, extent

if TYPE_CHECKING:
    from converter.symbolic_shapes import SymbolicShapes

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
    if inputs[0] is None or not (node.attributes.keep_num_dims or len(inputs[0]) == 2):
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
LOG_SOFTMAX L2_NORMALIZATION CUMSUM REVERSE_V2 CAST QUANTIZE DEQUANTIZE
""".split()
_BINARY = """
ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW FLOOR_DIV FLOOR_MOD EQUAL NOT_EQUAL GREATER
GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR SELECT_V2 SOFTMAX
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

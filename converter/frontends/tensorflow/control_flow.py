"""Branches and loops that depend on data: functions of the program become graphs of IF and WHILE nodes.

Constants and variables that a function captures are constants of its graph; other captured tensors are operands. Only
what is wanted of a node's outputs, and what those need, is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from converter.frontends.tensorflow.attributes import attribute
from converter.frontends.tensorflow.builder import Builder
from converter.frontends.tensorflow.ops.reading import Reserved, Variable
from schema.errors import ConversionError, UnsupportedError
from schema.graph import Graph, Shape, Tensor
from schema.ops.attributes import IfAttributes, WhileAttributes
from schema.ops.calls import widened

if TYPE_CHECKING:
    from converter.frontends.tensorflow.graph_reader import FunctionReader

BRANCHES = frozenset(("If", "StatelessIf"))
LOOPS = frozenset(("While", "StatelessWhile"))
BOOL = np.dtype(np.bool_)

Value = Tensor | Variable | Reserved
Outputs = dict[int, Value]


def read(
    reader: FunctionReader, node: Any, inputs: Sequence[Value], name: str, layer: str, wanted: set[int]
) -> Outputs:
    """The outputs of an If or While node, by their index, that are wanted."""
    if node.op in LOOPS:
        return _loop(reader, node, inputs, name, layer, wanted)
    condition = inputs[0]
    if not isinstance(condition, Tensor):
        raise UnsupportedError("the condition is a variable, not its value")
    value = reader.builder.value(condition)
    if value is not None:
        taken = "then_branch" if np.all(value) and value.size else "else_branch"
        return reader.call(attribute(node, taken), inputs[1:], name, wanted)
    condition = _truth(reader.builder, condition, layer, name)
    values = [value.tensor(layer) if isinstance(value, Reserved) else value for value in inputs[1:]]
    return _branch(reader, node, condition, values, name, layer, wanted)


class _Function:
    """A function as a graph: what its arguments are, and what has been read of it."""

    def __init__(
        self, reader: FunctionReader, function: str, values: Sequence[Value], shapes: Mapping[int, Shape | None]
    ):
        """shapes: of the arguments that are operands, by index; the others are constants or variables."""
        self.builder = Builder()
        self.operands: dict[int, Tensor] = {}
        self._reader, self._function = reader.within(self.builder), function
        self._arguments = [self._argument(reader, index, value, shapes) for index, value in enumerate(values)]

    def _argument(
        self, reader: FunctionReader, index: int, value: Value, shapes: Mapping[int, Shape | None]
    ) -> Value | None:
        """None for one that nothing needs that is wanted."""
        if isinstance(value, Variable):
            return value.within(self.builder)
        if index in shapes:
            self.operands[index] = self.builder.input(f"x{index}", value.dtype, shapes[index])
            return self.operands[index]
        known = reader.builder.value(value) if isinstance(value, Tensor) else None
        return None if known is None else self.builder.constant(known, value.name)

    def read(self, indices: Sequence[int], name: str) -> list[Tensor]:
        """These outputs, which are tensors."""
        found = self._reader.call(self._function, self._arguments, name, set(indices))
        results = [found.get(index) for index in indices]
        if any(not isinstance(result, Tensor) for result in results):
            raise UnsupportedError("a branch or loop that hands on variables or nothing is not supported")
        return results  # type: ignore[return-value]

    def uses(self, outputs: Sequence[Tensor]) -> set[int]:
        """Which operands its nodes and outputs read."""
        read = {tensor for node in self.builder.nodes for tensor in node.inputs} | set(outputs)
        return {index for index, tensor in self.operands.items() if tensor in read}

    def graph(self, operands: Sequence[int], outputs: Sequence[Tensor]) -> Graph:
        inputs = [self.operands[index] for index in operands]
        names = [[f"{letter}{i}" for i in range(len(there))] for letter, there in (("x", inputs), ("y", outputs))]
        return Graph(self.builder.nodes, inputs, names[0], list(outputs), names[1])


def _truth(builder: Builder, condition: Tensor, layer: str, name: str) -> Tensor:
    """A number counts as true where it is not 0."""
    if condition.dtype == BOOL:
        return condition
    zero = builder.constant(np.zeros((), condition.dtype), f"{name}/zero")
    (truth,) = builder.emit("NOT_EQUAL", [condition, zero], None, layer, name)
    return truth


def _operands(builder: Builder, values: Sequence[Value]) -> dict[int, Shape | None]:
    """The shapes of the values that are neither variables nor known."""
    tensors = {i: value for i, value in enumerate(values) if not isinstance(value, Variable)}
    return {i: _shape(builder, t) for i, t in tensors.items() if isinstance(t, Reserved) or builder.value(t) is None}


def _shape(builder: Builder, value: Value) -> Shape | None:
    return value.shape if isinstance(value, Reserved) else builder.type(value).shape  # type: ignore[arg-type]


def _branch(
    reader: FunctionReader,
    node: Any,
    condition: Tensor,
    values: Sequence[Value],
    name: str,
    layer: str,
    wanted: set[int],
) -> Outputs:
    indices, shapes = sorted(wanted), _operands(reader.builder, values)
    names = ("then_branch", "else_branch")
    branches = [_Function(reader, attribute(node, branch), values, shapes) for branch in names]
    results = [branch.read(indices, name) for branch in branches]
    used = sorted(set().union(*(branch.uses(outputs) for branch, outputs in zip(branches, results, strict=True))))
    attributes = IfAttributes(*(b.graph(used, outputs) for b, outputs in zip(branches, results, strict=True)))
    outputs = reader.builder.emit("IF", [condition, *(values[i] for i in used)], attributes, layer, name)  # type: ignore[list-item]
    return dict(zip(indices, outputs, strict=True))


def _loop(
    reader: FunctionReader, node: Any, values: Sequence[Value], name: str, layer: str, wanted: set[int]
) -> Outputs:
    functions = reader.program.functions
    names = [attribute(node, kind) for kind in ("cond", "body")]
    missing = [function for function in names if function not in functions]
    if missing:
        raise ConversionError(f"function {missing[0]} is missing: the file is damaged")
    condition, body = (functions[function] for function in names)
    shapes = _operands(reader.builder, values)
    carried = _carried(reader, condition, body, values, shapes, wanted)
    shapes = {i: _shape(reader.builder, values[i]) for i in carried}
    for attempt in range(4):  # shapes that do not last are widened: dimension by dimension, then all of them
        function = _Function(reader, names[1], values, shapes)
        results = function.read(carried, name)
        after = {i: function.builder.type(t).shape for i, t in zip(carried, results, strict=True)}
        following = {
            i: after[i] if shapes[i] is None and isinstance(values[i], Reserved) else widened(shapes[i], after[i])
            for i in carried
        }
        if following == shapes:
            break
        shapes = following if attempt < 2 else dict.fromkeys(carried)
    for index, result in zip(carried, results, strict=True):
        if result.dtype != values[index].dtype:  # type: ignore[union-attr]
            raise UnsupportedError(f"the loop's variable {index} changes its dtype")
    test = _Function(reader, names[0], values, shapes)
    truth = _truth(test.builder, test.read([0], name)[0], layer, name)
    attributes = WhileAttributes(test.graph(carried, [truth]), function.graph(carried, results))
    written = _written(function, carried, results)
    operands = [_operand(values, i, shapes[i], written, layer) for i in carried]
    outputs = dict(zip(carried, reader.builder.emit("WHILE", operands, attributes, layer, name), strict=True))
    return {index: outputs.get(index, values[index]) for index in wanted}


def _operand(values: Sequence[Value], index: int, shape: Shape | None, written: dict[int, int], layer: str) -> Tensor:
    value = values[index]
    if isinstance(value, Variable):
        raise UnsupportedError("a loop that changes which variable it works on is not supported")
    if isinstance(value, Tensor):
        return value
    value.element = None if shape is None else shape[1:]
    like = values[written[index]] if index in written else None
    return value.tensor(layer, like if isinstance(like, Tensor) else None)


def _written(function: _Function, carried: Sequence[int], results: Sequence[Tensor]) -> dict[int, int]:
    """For lists to which a body writes the new value of one of its variables, as recurrent layers do: which one. An
    element has the shape of that variable.
    """
    makers = {tensor: node for node in function.builder.nodes for tensor in node.outputs}
    found = {}
    for index, result in zip(carried, results, strict=True):
        select = makers.get(result)
        item = makers.get(select.inputs[1]) if select is not None and select.op == "SELECT_V2" else None  # type: ignore[arg-type]
        if item is not None and item.op == "EXPAND_DIMS" and item.inputs[0] in results:
            found[index] = carried[results.index(item.inputs[0])]
    return found


def _carried(
    reader: FunctionReader,
    condition: Any,
    body: Any,
    values: Sequence[Value],
    shapes: Mapping[int, Shape | None],
    wanted: set[int],
) -> list[int]:
    """The loop's variables that go from one iteration to the next: those that the condition and what is wanted need,
    without constants and variables that stay what they are.
    """
    fixed = {i for i in range(len(values)) if i not in shapes and _stays(body, i)}
    needed = _arguments(condition, [0]) | {i for i in wanted if i not in fixed}
    while True:
        more = _arguments(body, sorted(needed - fixed)) - needed
        if not more:
            return sorted(needed - fixed)
        needed |= more


def _stays(body: Any, index: int) -> bool:
    """Whether a body gives an argument on as it is."""
    nodes = {node.name: node for node in body.node_def}
    name = body.ret[body.signature.output_arg[index].name].split(":")[0]
    while name in nodes and nodes[name].op == "Identity":
        name = nodes[name].input[0].split(":")[0]
    return name == body.signature.input_arg[index].name


def _arguments(function: Any, outputs: Sequence[int]) -> set[int]:
    """Which arguments these outputs of a function depend on."""
    nodes = {node.name: node for node in function.node_def}
    arguments = {argument.name: index for index, argument in enumerate(function.signature.input_arg)}
    pending = [function.ret[function.signature.output_arg[index].name] for index in outputs]
    found: set[int] = set()
    seen: set[str] = set()
    while pending:
        name = pending.pop().split(":")[0]
        if name in seen:
            continue
        seen.add(name)
        if name in arguments:
            found.add(arguments[name])
        elif name in nodes:
            pending.extend(reference for reference in nodes[name].input if not reference.startswith("^"))
    return found

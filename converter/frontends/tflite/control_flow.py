"""Branches, loops and variables of a file. Subgraphs become graphs of the nodes that run them, a copy for each.
Variables become operands and results of what reads and assigns them, so that a graph is a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from converter.frontends.tflite.file import File
from converter.frontends.tflite.graph_shapes import settle
from converter.frontends.tflite.variables import Variable, Variables, united
from schema import evaluate, inference, limits
from schema.errors import FormatError, UnsupportedError, XnnError
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import IfAttributes, WhileAttributes
from schema.reader import MAX_DEPTH

if TYPE_CHECKING:
    from converter.frontends.tflite.graph_reader import Reader

RESOURCE = "RESOURCE"
MOST_OPERATORS = 200_000
"""Of a file and all copies of its subgraphs: subgraphs that run others several times can unfold into any number."""
INITIAL_ITERATIONS = 10_000  # of loops that compute a variable's first value

Value = Tensor | Variable


@dataclass(frozen=True)
class Operation:
    """options: the fields of its options table. inputs, outputs: indices of tensors. layer: the name of its node."""

    options: dict[str, Any]
    inputs: list[int]
    outputs: list[int]
    layer: str


class Unfolding:
    """What all readers of one file's subgraphs share.

    open: subgraphs that are being read, outermost first. initial: the variables' first values.
    """

    def __init__(self, file: File, subgraph: int):
        self.file, self.open = file, [subgraph]
        self.initial: dict[Variable, Tensor] = {}
        self.initialised: set[int] = set()
        self.operators = 0

    def count_operator(self) -> None:
        self.operators += 1
        if self.operators > MOST_OPERATORS:
            raise UnsupportedError(f"the subgraphs unfold into more than {MOST_OPERATORS} operators")


class Child:
    """A subgraph that an operator runs. outputs: in the file's order."""

    def __init__(self, parent: Reader, index: int, operands: Sequence[Value]):
        unfolding = parent.unfolding
        count = len(unfolding.file.subgraphs)
        if not 0 <= index < count:
            raise FormatError(f"subgraph {index} is none of the {count} there are")
        if index in unfolding.open:
            raise FormatError(f"subgraph {index} runs itself")
        if len(unfolding.open) == MAX_DEPTH:
            raise FormatError(f"subgraphs are nested deeper than {MAX_DEPTH}")
        unfolding.open.append(index)
        try:
            self.reader = parent.child(unfolding.file.subgraphs[index])
            self.inputs, self.outputs = self.reader.read(operands)
            if self.reader.states:
                raise UnsupportedError("layers that remember something are not supported in branches and loops")
        except XnnError as error:
            raise type(error)(f"subgraph {index}: {error}") from None
        unfolding.open.pop()

    @property
    def variables(self) -> Variables:
        return self.reader.variables

    def tensors(self) -> list[Tensor]:
        """The outputs without variables."""
        return [value for value in self.outputs if isinstance(value, Tensor)]

    def graph(self, reads: dict[Variable, Tensor], writes: Sequence[Variable] = ()) -> Graph:
        """The subgraph as a function of its operands and the variables `reads`, which gives those of `writes` too."""
        current = [self.variables.read(variable, like) for variable, like in reads.items()]
        before = [
            self.variables.before.get(variable) or Tensor(variable[1], value.dtype, value.shape, value.quantization)
            for variable, value in zip(reads, current, strict=True)
        ]
        inputs = [*self.inputs, *before]
        outputs = [*self.tensors(), *(self.variables.current[variable] for variable in writes)]
        names = [[f"{letter}{i}" for i in range(len(there))] for letter, there in (("x", inputs), ("y", outputs))]
        return Graph(self.reader.nodes, inputs, names[0], outputs, names[1])


def _output(operation: Operation) -> int:
    if len(operation.outputs) != 1:
        raise FormatError(f"{len(operation.outputs)} outputs; there is one")
    return operation.outputs[0]


def _operands(reader: Reader, operation: Operation) -> list[Value]:
    return [reader.value(index) for index in operation.inputs]


def _variable(reader: Reader, operation: Operation, count: int) -> tuple[Variable, list[Value]]:
    """The variable that is the first of `count` operands, and the others."""
    operands = _operands(reader, operation)
    if len(operands) != count or not isinstance(operands[0], tuple):
        raise FormatError(f"its operands are {len(operands)}, or no variable; there are a variable of {count}")
    return operands[0], operands[1:]


def _tensors(values: Sequence[Value]) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _bind(reader: Reader, operation: Operation, given: Sequence[Value]) -> list[Tensor]:
    """The operator's outputs; those that stand for variables are known from then on."""
    if len(operation.outputs) != len(given):
        raise FormatError(f"{len(operation.outputs)} outputs where its subgraph gives {len(given)}")
    made = []
    for index, value in zip(operation.outputs, given, strict=True):
        if isinstance(value, Tensor):
            made.append(reader.output(index))
        else:
            reader.handles[index] = value
    return made


def _emit(
    reader: Reader,
    node: Node,
    outputs: list[Tensor],
    reads: dict[Variable, Tensor],
    writes: Sequence[Variable],
) -> None:
    """The node, with the variables that its graphs read and write behind its operands and results."""
    node.inputs += [reader.variables.read(variable, like) for variable, like in reads.items()]
    after = [Tensor(variable[1], reads[variable].dtype, None, reads[variable].quantization) for variable in writes]
    node.outputs = [*outputs, *after]
    for variable, tensor in zip(writes, after, strict=True):
        reader.variables.assign(variable, tensor)
    if node.outputs:
        reader.nodes.append(node)
        reader.available.update(outputs)


def _if(reader: Reader, operation: Operation) -> None:
    condition, *operands = _operands(reader, operation) or [None]
    if not isinstance(condition, Tensor):
        raise FormatError("there is no condition")
    branches = [Child(reader, operation.options[f"{name}_subgraph_index"], operands) for name in ("then", "else")]
    kinds = [[value if isinstance(value, tuple) else None for value in branch.outputs] for branch in branches]
    if kinds[0] != kinds[1]:
        raise FormatError("its branches give different outputs")
    outputs = _bind(reader, operation, branches[0].outputs)
    reads = united(branch.variables for branch in branches)
    writes = list(dict.fromkeys(variable for branch in branches for variable in branch.variables.assigned))
    attributes = IfAttributes(*(branch.graph(reads, writes) for branch in branches))
    node = Node("IF", [condition, *_tensors(operands)], [], attributes, operation.layer)
    _emit(reader, node, outputs, reads, writes)


def _while(reader: Reader, operation: Operation) -> None:
    operands = _operands(reader, operation)
    condition = Child(reader, operation.options["cond_subgraph_index"], operands)
    body = Child(reader, operation.options["body_subgraph_index"], operands)
    if condition.variables.assigned:
        raise UnsupportedError("its condition assigns variables")
    if len(body.outputs) != len(operands):
        raise FormatError(f"its body takes {len(operands)} operands and gives {len(body.outputs)}")
    if any(isinstance(a, tuple) != isinstance(b, tuple) for a, b in zip(operands, body.outputs, strict=True)):
        raise FormatError("its body takes a variable where it gives a tensor, or the reverse")
    if any(a != b for a, b in zip(operands, body.outputs, strict=True) if isinstance(a, tuple)):
        raise UnsupportedError("its body gives other variables than it takes")
    outputs = _bind(reader, operation, body.outputs)
    reads = united((condition.variables, body.variables))
    graphs = condition.graph(reads), body.graph(reads, list(reads))
    if graphs[1].inputs:
        node = Node("WHILE", list(_tensors(operands)), [], WhileAttributes(*graphs), operation.layer)
        _emit(reader, node, outputs, reads, list(reads))


def _call_once(reader: Reader, operation: Operation) -> None:
    """The first values of the variables that a subgraph of constants assigns, computed here."""
    unfolding, index = reader.unfolding, operation.options["init_subgraph_index"]
    if len(unfolding.open) > 1:
        raise UnsupportedError("variables get their first values inside of a branch or loop")
    if index in unfolding.initialised:
        return
    child = Child(reader, index, [])
    unfolding.initialised.add(index)
    assigned = child.variables.assigned
    if child.inputs or child.variables.before:
        raise UnsupportedError("first values of variables that are not constant")
    if any(variable in reader.variables.current for variable in assigned):
        raise UnsupportedError("a variable gets its first value after it is used")
    graph = child.graph({}, assigned)
    settle(graph)
    inference.infer(graph)
    with limits.iterations(INITIAL_ITERATIONS):
        values = evaluate.run(graph, [])
    for variable, tensor, value in zip(assigned, graph.outputs, values, strict=True):
        unfolding.initial[variable] = Tensor.from_array(variable[1], value, tensor.quantization)


def _var_handle(reader: Reader, operation: Operation) -> None:
    reader.handles[_output(operation)] = (operation.options["container"] or "", operation.options["shared_name"] or "")


def _read_variable(reader: Reader, operation: Operation) -> None:
    variable, _ = _variable(reader, operation, 1)
    index = _output(operation)
    value = reader.variables.read(variable, reader.output(index))
    reader.tensors[index] = value
    reader.available.add(value)


def _assign_variable(reader: Reader, operation: Operation) -> None:
    variable, (value,) = _variable(reader, operation, 2)
    if not isinstance(value, Tensor):
        raise FormatError("a variable is assigned to a variable")
    reader.variables.assign(variable, value)


Read = Callable[["Reader", Operation], None]
READERS: dict[str, tuple[str | None, Read]] = {
    "IF": ("IfOptions", _if),
    "WHILE": ("WhileOptions", _while),
    "CALL_ONCE": ("CallOnceOptions", _call_once),
    "VAR_HANDLE": ("VarHandleOptions", _var_handle),
    "READ_VARIABLE": (None, _read_variable),
    "ASSIGN_VARIABLE": (None, _assign_variable),
}
"""(options table, function) of each operator: the function changes what the reader knows."""

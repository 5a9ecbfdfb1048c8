"""A TensorFlow program to a schema.Graph.

Only what the outputs need is looked at, so training code, asserts and side effects never come into sight. Function
calls are followed in place. Each op's reading is a function in `ops/`, found by TensorFlow's op name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from converter.frontends.tensorflow import control_flow, dtypes
from converter.frontends.tensorflow.attributes import attribute, output_index
from converter.frontends.tensorflow.builder import Builder
from converter.frontends.tensorflow.ops import READERS
from converter.frontends.tensorflow.ops.reading import Reading, Reserved, Variable
from converter.frontends.tensorflow.ops.values import EXACT
from converter.frontends.tensorflow.program import Program
from schema.errors import ConversionError, UnsupportedError, XnnError
from schema.graph import Graph, Tensor

Value = Tensor | Variable | Reserved
CALLS = frozenset(("PartitionedCall", "StatefulPartitionedCall"))
REMEDY = "replace that layer by supported ones, or cut it from the model and compute it outside"
NO_LOOPS = (
    "loops of TensorFlow 1, and lists of tensors that grow, are not supported; convert only the part of the model "
    "before the loop"
)
LOOPS = frozenset("Enter Exit NextIteration Switch Merge".split())


def read(program: Program) -> Graph:
    """The whole program as one graph.

    Raises UnsupportedError, naming layer and op, for an op or dtype that xnn does not handle.
    """
    builder = Builder()
    reader = FunctionReader(program, builder)
    inputs = [builder.input(port.name, port.dtype, port.shape) for port in program.inputs]  # type: ignore[arg-type]
    given = {port.reference: tensor for port, tensor in zip(program.inputs, inputs, strict=True)}
    scope = _Scope({node.name: node for node in program.nodes}, dict(given), "", False)
    outputs = []
    for port, value in zip(program.outputs, reader.values(scope, [p.reference for p in program.outputs]), strict=True):
        if not isinstance(value, Tensor):
            raise UnsupportedError(f"output '{port.name}' is no tensor: only numbers and bool can leave a model")
        outputs.append(value)
    names = [[port.name for port in ports] for ports in (program.inputs, program.outputs)]
    state = []
    for name, before, after, first in _remembered(program, reader, scope):
        while name in names[0]:
            name = f"{name}_"
        inputs.append(before)
        outputs.append(after)
        names[0].append(name)
        names[1].append(f"{name}/next")
        state.append(builder.constant(first, name))
    graph = builder.graph(inputs, names[0], outputs, names[1])
    graph.name, graph.state = program.name, state
    return graph


def _remembered(
    program: Program, reader: FunctionReader, scope: _Scope
) -> Iterator[tuple[str, Tensor, Tensor, np.ndarray]]:
    """(name, before, after, value at first) of the variables that the program assigns and that what it gives, now or
    in later runs, depends on.
    """
    pending = dict(program.updates)
    while True:
        node = next((n for n in pending if n in reader.variables and reader.variables[n].input is not None), None)
        if node is None:
            return
        update, variable = pending.pop(node), reader.variables[node]
        (after,) = reader.values(scope, [update.reference])
        if not isinstance(after, Tensor) or variable.input is None:
            raise UnsupportedError(f"variable '{update.name}' is assigned what is no tensor")
        yield update.name, variable.input, after, variable.first()


class _Scope:
    """The nodes of the program or of one function call, and what has been computed of them.

    values: by reference, "node:index" (of a function's arguments: "argument:0"). prefix: the call's name scope.
    """

    def __init__(self, nodes: Mapping[str, Any], values: dict[str, Value], prefix: str, is_function: bool):
        self.nodes, self.values, self.prefix, self.is_function = nodes, values, prefix, is_function

    def key(self, reference: str) -> tuple[str, int]:
        """(node, output index) of "node", "node:1" or, in a function, "node:output:1"."""
        name, *rest = reference.split(":")
        if len(rest) == 2:
            return name, output_index(self.nodes[name], rest[0], int(rest[1]))
        return name, int(rest[0]) if rest else 0


class FunctionReader:
    """Reads nodes of the program and its functions into one graph, the builder's."""

    def __init__(self, program: Program, builder: Builder):
        self.program, self.builder = program, builder
        self.variables: dict[str, Variable] = {}

    def within(self, builder: Builder) -> FunctionReader:
        """The reader of a function that becomes a graph of its own."""
        return FunctionReader(self.program, builder)

    def values(self, scope: _Scope, references: Sequence[str]) -> list[Value]:
        """What these references stand for, after reading all nodes that they need."""
        keys = [scope.key(reference) for reference in references]
        needed = self._order(scope, [name for name, index in keys if f"{name}:{index}" not in scope.values])
        wanted: dict[str, set[int]] = {}
        for name, index in (*keys, *(scope.key(r) for node in needed for r in _data_inputs(node))):
            wanted.setdefault(name, set()).add(index)
        for node in needed:
            self._read_node(scope, node, wanted.get(node.name, {0}))
        return [self._value(scope, name, index) for name, index in keys]

    def _order(self, scope: _Scope, names: Sequence[str]) -> list[Any]:
        """These nodes and all that they need, producers first."""
        order, done, open_nodes = [], set(), set()
        stack = [(name, False) for name in reversed(names)]
        while stack:
            name, expanded = stack.pop()
            if expanded:
                done.add(name)
                open_nodes.discard(name)
                order.append(scope.nodes[name])
                continue
            if name in done:
                continue
            if name in open_nodes:
                layer = self.program.layers.layer(f"{scope.prefix}{name}")
                raise UnsupportedError(f"layer '{layer}': {NO_LOOPS}")
            node = scope.nodes.get(name)
            if node is None:
                raise ConversionError(f"the program names a node '{name}' that it does not have: the file is damaged")
            open_nodes.add(name)
            stack.append((name, True))
            for reference in _data_inputs(node):
                producer, index = scope.key(reference)
                if f"{producer}:{index}" not in scope.values:
                    stack.append((producer, False))
        return order

    def _value(self, scope: _Scope, name: str, index: int) -> Value:
        value = scope.values.get(f"{name}:{index}")
        if value is None:
            node = scope.nodes.get(name)
            op = "a node" if node is None else node.op
            raise UnsupportedError(f"output {index} of '{name}' ({op}) is not supported; {REMEDY}")
        return value

    def _read_node(self, scope: _Scope, node: Any, wanted: set[int]) -> None:
        name = f"{scope.prefix}{node.name}"
        inputs = [self._value(scope, *scope.key(reference)) for reference in _data_inputs(node)]
        if node.op in CALLS or node.op in self.program.functions:
            outputs = self.call(attribute(node, "f") if node.op in CALLS else node.op, inputs, name, wanted)
        elif node.op in control_flow.BRANCHES or node.op in control_flow.LOOPS:
            layer = self.program.layers.layer(name)
            try:
                outputs = control_flow.read(self, node, inputs, name, layer, wanted)
            except XnnError as error:
                if str(error).startswith("layer '"):  # of the node inside
                    raise
                raise type(error)(f"layer '{layer}' (TensorFlow op {node.op}): {error}") from None
        else:
            layer = self.program.layers.layer(name)
            try:
                result = self._outputs(scope, node, name, layer, inputs)
            except XnnError as error:
                raise type(error)(f"layer '{layer}' (TensorFlow op {node.op}): {error}") from None
            outputs = dict(enumerate(result)) if isinstance(result, (list, tuple)) else {0: result}
        scope.values.update((f"{node.name}:{index}", value) for index, value in outputs.items() if value is not None)

    def _outputs(self, scope: _Scope, node: Any, name: str, layer: str, inputs: list[Value]) -> Any:
        if not scope.is_function and node.name in self.program.variables:
            return self._variable(node)
        if not scope.is_function and node.name in self.program.captured:
            return self.builder.constant(dtypes.from_array(self.program.captured[node.name]), name)
        reader = READERS.get(node.op)
        if reader is None:
            raise _refusal(node)
        return reader(Reading(self.builder, node, name, layer, inputs))

    def _variable(self, node: Any) -> Value:
        if node.name not in self.variables:
            remembered = node.name in self.program.updates
            self.variables[node.name] = Variable(node.name, self.program.variables[node.name], self.builder, remembered)
        variable = self.variables[node.name]
        return variable.tensor() if node.op in ("Variable", "VariableV2") else variable

    def call(self, function: str, inputs: Sequence[Value | None], name: str, wanted: set[int]) -> dict[int, Value]:
        """The wanted outputs of a function, read in place. name: of the node that calls it. None: an input that those
        outputs do not need.
        """
        body = self.program.functions.get(function)
        if body is None:
            raise ConversionError(f"function {function} is missing: the file is damaged")
        pairs = zip(body.signature.input_arg, inputs)  # noqa: B905
        arguments = {f"{argument.name}:0": value for argument, value in pairs if value is not None}
        prefix = name[: name.rfind("/") + 1]
        if any(node.name.startswith(prefix) for node in body.node_def):
            prefix = ""  # branches and bodies of loops have the whole name already
        scope = _Scope({n.name: n for n in body.node_def}, arguments, prefix, True)
        results = [body.ret[argument.name] for argument in body.signature.output_arg]
        indices = sorted(index for index in wanted if index < len(results))
        return dict(zip(indices, self.values(scope, [results[i] for i in indices]), strict=True))


def _data_inputs(node: Any) -> list[str]:
    references = [reference for reference in node.input if not reference.startswith("^")]
    return references[1:] if node.op == "IdentityN" and EXACT in node.name else references


def _refusal(node: Any) -> UnsupportedError:
    if node.op in LOOPS or "TensorList" in node.op:
        return UnsupportedError(NO_LOOPS)
    if node.op.startswith(("Random", "StatelessRandom", "StatelessTruncated", "TruncatedNormal", "Multinomial")):
        return UnsupportedError("random numbers are not supported; export the model for inference (training=False)")
    if "String" in node.op or "Table" in node.op or "Lookup" in node.op:
        return UnsupportedError("strings and tables are not supported; do that preprocessing outside of the model")
    if node.op == "Placeholder":
        return UnsupportedError(f"'{node.name}' is no input of the signature but is needed; name it in the signature")
    return UnsupportedError(f"this op is not supported; {REMEDY}")

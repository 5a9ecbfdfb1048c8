"""A subgraph of the file to a schema.Graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converter.frontends.tflite import control_flow, legacy_uint8, signatures, tensors
from converter.frontends.tflite.file import File
from converter.frontends.tflite.graph_shapes import settle
from converter.frontends.tflite.layout import defaults
from converter.frontends.tflite.ops import READERS
from converter.frontends.tflite.reading import Reading
from converter.frontends.tflite.variables import Variable, Variables, remembered
from schema import inference, ops
from schema.errors import FormatError, ShapeError, UnsupportedError, XnnError
from schema.graph import Constant, Graph, Node, Tensor, nested
from schema.inference import CONTROL_FLOW

REMEDY = "convert the model that this file was made from, or cut that layer off and compute it outside"
NUMBERS = frozenset(
    """RESHAPE TRANSPOSE CONCATENATION SPLIT SPLIT_V PACK UNPACK SLICE STRIDED_SLICE PAD PADV2 MIRROR_PAD TILE GATHER
    GATHER_ND EXPAND_DIMS SQUEEZE SHAPE RANK FILL BROADCAST_TO REVERSE_V2 SPACE_TO_DEPTH DEPTH_TO_SPACE
    SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND RESIZE_NEAREST_NEIGHBOR ONE_HOT SELECT_V2 MAXIMUM MINIMUM ARG_MAX ARG_MIN
    CAST TOPK_V2 WHERE SCATTER_ND IF WHILE""".split()
)
"""Ops for which int8 and int16 may be plain numbers, without a scale."""


def read(file: File, wanted: str | None) -> Graph:
    """The signature of that name (see signatures.choose) as a graph that fits together.

    Raises FormatError, with the place, for a file that contradicts itself, UnsupportedError for operators and dtypes
    that xnn does not have.
    """
    signature = signatures.choose(file, wanted)
    unfolding = control_flow.Unfolding(file, signature.subgraph)
    graph = Reader(unfolding, file.subgraphs[signature.subgraph]).graph(signature)
    for inner in nested(graph):
        legacy_uint8.rewrite(inner)
        for node in inner.nodes:
            _check(node)
    try:
        settle(graph)
        for inner in nested(graph):
            for node in inner.nodes:
                if node.op in CONTROL_FLOW:
                    _check_attributes(node)
        inference.annotate(graph)
    except ShapeError as error:
        raise FormatError(str(error)) from None
    return graph


class Reader:
    """One subgraph. Tensors are read when an operator first names them, and checked to be there when it runs.

    handles: which variable a tensor of the file stands for. variables: what is known of them.
    """

    def __init__(self, unfolding: control_flow.Unfolding, raw: dict[str, Any]):
        self.unfolding, self.file, self.raw = unfolding, unfolding.file, raw
        self.stored = raw["tensors"] or []
        self.tensors: dict[int, Tensor] = {}
        self.available: set[Tensor] = set()
        self.handles: dict[int, Variable] = {}
        self.variables = Variables()
        self.nodes: list[Node] = []
        self.states: list[tuple[Tensor, Tensor]] = []

    def graph(self, signature: signatures.Signature) -> Graph:
        """The whole model."""
        inputs, found = self.read()
        outputs = [tensor for tensor in found if isinstance(tensor, Tensor)]
        if len(outputs) < len(found):
            raise UnsupportedError("the subgraph's outputs: a variable cannot leave a model")
        names = []
        for kind, known in (("inputs", signature.inputs), ("outputs", signature.outputs)):
            indices = _indices(self.raw[kind])
            names.append(signatures.names(known, indices, [tensors.name_of(self.stored[i], i) for i in indices]))
        outputs = self._distinct(outputs, inputs, names[1])
        for state, following in self.states:
            inputs.append(state)
            outputs.append(following)
            names[0].append(signatures.distinct(state.name, names[0]))
            names[1].append(signatures.distinct(following.name, names[1]))
        initial = []
        for name, before, after, first in remembered(self.variables, self.unfolding.initial):
            inputs.append(before)
            names[0].append(signatures.distinct(name, names[0]))
            names[1].append(signatures.distinct(f"{name}/next", names[1]))
            outputs += self._distinct([after], [*inputs, *outputs], names[1][-1:])
            initial.append(first)
        return Graph(self.nodes, inputs, names[0], outputs, names[1], signature.name, initial)

    def read(self, operands: Sequence[control_flow.Value] | None = None) -> tuple[list[Tensor], list]:
        """(inputs without variables, outputs, variables among them) after reading all operators. operands: what an
        operator gives to the subgraph.
        """
        indices = _indices(self.raw["inputs"])
        if operands is not None and len(operands) != len(indices):
            raise FormatError(f"{len(operands)} operands for its {len(indices)} inputs")
        inputs = []
        for index, operand in zip(indices, operands or [None] * len(indices), strict=True):
            if isinstance(operand, tuple):
                self.handles[index] = operand
            else:
                inputs.append(self._input(index))
        for position, raw in enumerate(self.raw["operators"] or []):
            self.unfolding.count_operator()
            self._operator(position, raw)
        return inputs, [self.value(index, "the subgraph's outputs") for index in _indices(self.raw["outputs"])]

    def child(self, raw: dict[str, Any]) -> Reader:
        """The reader of a subgraph that an operator of this one runs."""
        return Reader(self.unfolding, raw)

    def value(self, index: int, place: str = "its operands") -> control_flow.Value:
        """A tensor that is there, or the variable that it stands for."""
        if index in self.handles:
            return self.handles[index]
        tensor = self._tensor(index, place)
        self._require_available(tensor, place)
        return tensor

    def output(self, index: int) -> Tensor:
        """A tensor that an operator computes."""
        tensor = self._tensor(index, "its outputs")
        if tensor in self.available or tensor.is_constant:
            raise FormatError(f"output '{tensor.name}' is a constant, an input, or computed twice")
        return tensor

    def _tensor(self, index: int, place: str) -> Tensor:
        if not 0 <= index < len(self.stored):
            raise FormatError(f"{place}: tensor {index} is none of the {len(self.stored)} there are")
        if index not in self.tensors:
            self.tensors[index] = tensors.read(self.file, self.stored[index], index)
        return self.tensors[index]

    def _input(self, index: int) -> Tensor:
        tensor = self._tensor(index, "the subgraph's inputs")
        if tensor in self.available or tensor.is_constant:
            raise FormatError(f"the subgraph's inputs: '{tensor.name}' is a constant, or an input twice")
        self.available.add(tensor)
        return tensor

    def _operand(self, index: int, place: str) -> Tensor | None:
        """None for what is left out, and for a variable: no op but those that go through time reads one."""
        if index == -1 or (0 <= index < len(self.stored) and self.stored[index]["is_variable"]):
            return None
        return self._tensor(index, place)

    def _require_available(self, tensor: Tensor, place: str) -> None:
        if tensor in self.available or tensor.is_constant:
            return
        if tensor.shape is None or 0 not in tensor.shape:
            raise FormatError(f"{place}: '{tensor.name}' is computed later, or never")
        tensor.set_constant(Constant(np.zeros([size or 0 for size in tensor.shape], tensor.dtype)))

    def _operator(self, position: int, raw: dict[str, Any]) -> None:
        place = f"operator {position}"
        operator = self.file.operator(raw["opcode_index"], place)
        if operator.name in control_flow.READERS:
            self._control_flow(operator, raw, position)
            return
        place = f"{place} ({operator.custom or operator.name})"
        outputs = [self._tensor(index, place) for index in _indices(raw["outputs"])]
        if not outputs:
            raise FormatError(f"{place} computes nothing")
        layer = _layer(outputs[0].name, operator.name, position)
        place = f"layer '{layer}' (operator {position}, {operator.custom or operator.name})"
        inputs = [self._operand(index, place) for index in _indices(raw["inputs"])]
        for tensor in inputs:
            if tensor is not None:
                self._require_available(tensor, place)
        try:
            for index in _indices(raw["outputs"]):
                self.output(index)
            self._read_operator(operator, raw, inputs, outputs, layer)
        except XnnError as error:
            raise type(error)(f"{place}: {error}") from None
        self.available.update(outputs)

    def _read_operator(
        self, operator: Any, raw: dict[str, Any], inputs: list, outputs: list[Tensor], layer: str
    ) -> None:
        reader = READERS.get(operator.custom or operator.name)
        if reader is None:
            raise _refusal(operator)
        options = _options(raw, reader.options)
        place = f"{operator.name}'s variables and intermediates"
        variables = {
            position: self._tensor(index, place)
            for position, index in enumerate(_indices(raw["inputs"]))
            if index != -1 and self.stored[index]["is_variable"]
        }
        intermediates = [self._tensor(index, place) for index in _indices(raw["intermediates"])]
        custom = b"" if raw["custom_options"] is None else raw["custom_options"].tobytes()
        reader.read(Reading(options, custom, inputs, outputs, layer, self.nodes, self.states, variables, intermediates))

    def _control_flow(self, operator: Any, raw: dict[str, Any], position: int) -> None:
        table, read = control_flow.READERS[operator.name]
        outputs = _indices(raw["outputs"])
        named = next((self.stored[i]["name"] for i in outputs if 0 <= i < len(self.stored)), None)
        layer = _layer(named or "", operator.name, position)
        try:
            read(self, control_flow.Operation(_options(raw, table), _indices(raw["inputs"]), outputs, layer))
        except XnnError as error:
            raise type(error)(f"layer '{layer}' (operator {position}, {operator.name}): {error}") from None

    def _distinct(self, outputs: list[Tensor], inputs: list[Tensor], names: list[str]) -> list[Tensor]:
        """Outputs that are inputs, constants, or one tensor twice get nodes of their own."""
        result: list[Tensor] = []
        for tensor, name in zip(outputs, names, strict=True):
            if tensor.is_constant or tensor in inputs or tensor in result:
                copy = Tensor(name, tensor.dtype, None, tensor.quantization)
                attributes = ops.get("CAST").Attributes(tensor.dtype)  # type: ignore[misc]
                self.nodes.append(Node("CAST", [tensor], [copy], attributes, name))
                tensor = copy
            result.append(tensor)
        return result


def _indices(vector: np.ndarray | None) -> list[int]:
    return [] if vector is None else vector.tolist()


def _options(raw: dict[str, Any], table: str | None) -> dict[str, Any]:
    """The fields of an operator's options table; {} for an operator that has none."""
    if table is None:
        return {}
    if raw["builtin_options"] is None:
        return defaults(table)
    if raw["builtin_options"][0] == table:
        return raw["builtin_options"][1]
    raise FormatError(f"its options are {raw['builtin_options'][0]}, not {table}")


def _layer(output: str, op: str, position: int) -> str:
    """Operators have no names: the first of the layers that the output's name lists, since one may be fused of many."""
    name = output.partition(";")[0]
    return name or f"{op.lower()}_{position}"


def _check(node: Node) -> None:
    """Raise FormatError for operands and attributes that the op does not have."""
    op = ops.get(node.op)
    fewest, most = op.inputs
    count = len(node.inputs)
    if count < fewest or (most is not None and count > most):
        raise FormatError(f"{node}: {count} inputs; there are {fewest} to {'any number' if most is None else most}")
    if None in node.inputs[:fewest]:
        raise FormatError(f"{node}: an input that cannot be left out is left out")
    if node.op not in NUMBERS:
        for tensor in (*node.inputs, *node.outputs):
            if tensor is not None and tensor.dtype in (np.int8, np.int16) and tensor.quantization is None:
                raise FormatError(f"{node}: '{tensor.name}' is {tensor.dtype} without a scale")
    if op.outputs is not None and len(node.outputs) != op.outputs:
        raise FormatError(f"{node}: {len(node.outputs)} outputs; there are {op.outputs}")
    if node.op not in CONTROL_FLOW:  # shapes inside of those are not known yet
        _check_attributes(node)


def _check_attributes(node: Node) -> None:
    try:
        ops.get(node.op).check(node.attributes)
    except ShapeError as error:
        raise FormatError(f"{node}: {error}") from None


def _refusal(operator: Any) -> UnsupportedError:
    if operator.custom.startswith("Flex"):
        return UnsupportedError(f"{operator.custom} runs in TensorFlow, not in TFLite: convert the SavedModel instead")
    if operator.custom:
        return UnsupportedError(f"the custom operator {operator.custom} is not supported; {REMEDY}")
    return UnsupportedError(f"operator {operator.name} (version {operator.version}) is not supported; {REMEDY}")

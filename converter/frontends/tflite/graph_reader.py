"""A subgraph of the file to a schema.Graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from converter.frontends.tflite import legacy_uint8, signatures, tensors
from converter.frontends.tflite.file import File
from converter.frontends.tflite.layout import defaults
from converter.frontends.tflite.ops import READERS
from converter.frontends.tflite.reading import Reading
from schema import inference, ops
from schema.errors import FormatError, ShapeError, UnsupportedError, XnnError
from schema.graph import Constant, Graph, Node, Tensor

REMEDY = "convert the model that this file was made from, or cut that layer off and compute it outside"
NUMBERS = frozenset(
    """RESHAPE TRANSPOSE CONCATENATION SPLIT SPLIT_V PACK UNPACK SLICE STRIDED_SLICE PAD PADV2 MIRROR_PAD TILE GATHER
    GATHER_ND EXPAND_DIMS SQUEEZE SHAPE RANK FILL BROADCAST_TO REVERSE_V2 SPACE_TO_DEPTH DEPTH_TO_SPACE
    SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND RESIZE_NEAREST_NEIGHBOR ONE_HOT SELECT_V2 MAXIMUM MINIMUM ARG_MAX ARG_MIN
    CAST TOPK_V2 WHERE SCATTER_ND""".split()
)
"""Ops for which int8 and int16 may be plain numbers, without a scale."""
CONTROL_FLOW = frozenset("IF WHILE CALL CALL_ONCE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE".split())


def read(file: File, wanted: str | None) -> Graph:
    """The signature of that name (see signatures.choose) as a graph that fits together.

    Raises FormatError, with the place, for a file that contradicts itself, UnsupportedError for operators and dtypes
    that xnn does not have.
    """
    signature = signatures.choose(file, wanted)
    reader = _Reader(file, file.subgraphs[signature.subgraph])
    graph = reader.graph(signature)
    legacy_uint8.rewrite(graph)
    for node in graph.nodes:
        _check(node)
    try:
        inference.annotate(graph)
    except ShapeError as error:
        raise FormatError(str(error)) from None
    return graph


class _Reader:
    """Tensors are read when an operator first names them, and checked to be there when it runs."""

    def __init__(self, file: File, raw: dict[str, Any]):
        self.file, self.raw = file, raw
        self.stored = raw["tensors"] or []
        self.tensors: dict[int, Tensor] = {}
        self.available: set[Tensor] = set()
        self.nodes: list[Node] = []
        self.states: list[tuple[Tensor, Tensor]] = []

    def graph(self, signature: signatures.Signature) -> Graph:
        inputs = [self._input(index) for index in _indices(self.raw["inputs"])]
        for position, raw in enumerate(self.raw["operators"] or []):
            self._operator(position, raw)
        outputs = []
        for index in _indices(self.raw["outputs"]):
            tensor = self._tensor(index, "the subgraph's outputs")
            self._require_available(tensor, "the subgraph's outputs")
            outputs.append(tensor)
        names = [
            signatures.names(known, _indices(self.raw[kind]), [tensor.name for tensor in there])
            for kind, known, there in (("inputs", signature.inputs, inputs), ("outputs", signature.outputs, outputs))
        ]
        outputs = self._distinct(outputs, inputs, names[1])
        for state, following in self.states:
            inputs.append(state)
            outputs.append(following)
            names[0].append(signatures.distinct(state.name, names[0]))
            names[1].append(signatures.distinct(following.name, names[1]))
        return Graph(self.nodes, inputs, names[0], outputs, names[1], signature.name)

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
        place = f"{place} ({operator.custom or operator.name})"
        outputs = [self._tensor(index, place) for index in _indices(raw["outputs"])]
        if not outputs:
            raise FormatError(f"{place} computes nothing")
        layer = _layer(outputs[0], operator.name, position)
        place = f"layer '{layer}' (operator {position}, {operator.custom or operator.name})"
        inputs = [self._operand(index, place) for index in _indices(raw["inputs"])]
        for tensor in inputs:
            if tensor is not None:
                self._require_available(tensor, place)
        for tensor in outputs:
            if tensor in self.available or tensor.is_constant:
                raise FormatError(f"{place}: output '{tensor.name}' is a constant, an input, or computed twice")
        try:
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
        if reader.options is None:
            options: dict[str, Any] = {}
        elif raw["builtin_options"] is None:
            options = defaults(reader.options)
        elif raw["builtin_options"][0] == reader.options:
            options = raw["builtin_options"][1]
        else:
            raise FormatError(f"its options are {raw['builtin_options'][0]}, not {reader.options}")
        place = f"{operator.name}'s variables and intermediates"
        variables = {
            position: self._tensor(index, place)
            for position, index in enumerate(_indices(raw["inputs"]))
            if index != -1 and self.stored[index]["is_variable"]
        }
        intermediates = [self._tensor(index, place) for index in _indices(raw["intermediates"])]
        custom = b"" if raw["custom_options"] is None else raw["custom_options"].tobytes()
        reader.read(Reading(options, custom, inputs, outputs, layer, self.nodes, self.states, variables, intermediates))

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


def _layer(output: Tensor, op: str, position: int) -> str:
    """Operators have no names: the first of the layers that the output's name lists, since one may be fused of many."""
    name = output.name.partition(";")[0]
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
    try:
        op.check(node.attributes)
    except ShapeError as error:
        raise FormatError(f"{node}: {error}") from None


def _refusal(operator: Any) -> UnsupportedError:
    if operator.custom.startswith("Flex"):
        return UnsupportedError(f"{operator.custom} runs in TensorFlow, not in TFLite: convert the SavedModel instead")
    if operator.custom:
        return UnsupportedError(f"the custom operator {operator.custom} is not supported; {REMEDY}")
    if operator.name in CONTROL_FLOW:
        return UnsupportedError(f"branches, loops and variables ({operator.name}) are not supported; {REMEDY}")
    return UnsupportedError(f"operator {operator.name} (version {operator.version}) is not supported; {REMEDY}")

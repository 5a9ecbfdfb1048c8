"""An `.xnn` file to a model in memory: the one load path. Whatever comes out has been verified, in structure and in
meaning.

Order: section table and checksums (container), every offset of the FlatBuffer or length of the columns (metadata), then
here what the numbers mean: tensor indices, order of nodes, operand counts, attributes, shapes, dtypes, scales, zero
points, names, streams.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from schema import container, dtypes, inference, metadata, ops
from schema.coding import constant as constant_coding
from schema.coding.streams import EncodedConstant, Stream
from schema.errors import FormatError, XnnError
from schema.graph import Constant, Graph, Model, Node, StoredConstant, Tensor
from schema.ops import attributes as attribute_tables
from schema.ops import calls
from schema.quantization import Quantization

READER_VERSION = 5
MAX_DEPTH = 16  # of graphs that run each other
SHARED_BYTES = 16 << 20  # of constants that may be decoded beyond what streams of their own could hold


def read(source: bytes | bytearray | memoryview | str | os.PathLike) -> Model:
    """The model of a file's bytes, or of the file at a path. Raises FormatError.

    Stored tensors stay views of the bytes where their coding allows it. Large ones that are coded can be released, and
    are decoded again when they are asked for after that: the bytes must stay as they are.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _read(memoryview(source))
    path = Path(source)
    if path.is_dir():
        raise FormatError(
            f"{path} is a folder, not an .xnn file (convert it first: python -m converter {path} out.xnn)"
        )
    if not path.exists():
        raise FormatError(f"there is no file {path}")
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    try:
        return _read(memoryview(data))
    except XnnError as error:
        raise type(error)(f"{path}: {error}") from None


def verify(source: bytes | str | os.PathLike) -> None:
    """Raise FormatError, with the place, when `source` is not a file that the engine may run."""
    read(source)


def _read(data: memoryview) -> Model:
    sections = container.unpack(data)
    raw = metadata.read(sections)
    if raw["minimum_reader"] > READER_VERSION:
        raise FormatError(
            f"the file needs a reader of version {raw['minimum_reader']}, this is version {READER_VERSION}: update xnn"
        )
    if not raw["graphs"]:
        raise FormatError("the file holds no graph")
    weights = _Weights(sections.get(container.WEIGHTS, memoryview(b"")))
    graphs = _Graphs(raw["graphs"], weights).all()
    entries = {e["key"] or "": e["value"] or "" for e in raw["metadata"] or []}
    return Model(graphs, raw["requantization"], raw["producer"] or "", entries)


RELEASABLE = 1 << 14
"""Elements of coded constants that can be forgotten and decoded again; smaller ones are not worth it."""


class _Weights:
    """The weights section: what has been decoded, and how much more may be.

    A byte stands for MAX_EXPANSION bytes of values at most, and streams can be shared: without a limit a small file
    could name one stream in each of many constants, or say much in few bytes.
    """

    def __init__(self, data: memoryview):
        self.data = data
        self.left = constant_coding.MAX_EXPANSION * len(data) + SHARED_BYTES
        self.decoded: dict[Any, Constant] = {}

    def constant(
        self, raw: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype, kernel: Constant | None = None
    ) -> Constant:
        """One object for all tensors that store the same. kernel: from which values are expected, where they are."""
        key = (shape, dtype, *((k, tuple(v.items()) if isinstance(v, dict) else v) for k, v in raw.items()))
        if key not in self.decoded:
            encoded = self._encoded(raw)
            self.left -= encoded.dtype.itemsize * math.prod(shape)
            self.left -= 0 if kernel is None else np.asarray(kernel.values).nbytes  # which is summed up each time
            if self.left < 0:
                raise FormatError("the constants say far more than the file holds")
            if kernel is not None:
                return constant_coding.decode(encoded, shape, dtype, kernel)
            decode = partial(constant_coding.decode, encoded, shape, dtype)
            large = encoded.values.coding != "RAW" and math.prod(shape) >= RELEASABLE
            self.decoded[key] = StoredConstant(decode) if large else decode()
        return self.decoded[key]

    def _encoded(self, raw: dict[str, Any]) -> EncodedConstant:
        streams: dict[str, Any] = {name: self._stream(name, raw[name]) for name in metadata.STREAMS}
        assert streams["values"] is not None  # required by the schema
        others: dict[str, Any] = {name: raw[name] for name in ("nonzeros", "axis", "scale_factor", "factor")}
        return EncodedConstant(dtypes.TO_NUMPY[raw["dtype"]], **streams, **others)

    def _stream(self, name: str, raw: dict[str, Any] | None) -> Stream | None:
        if raw is None:
            return None
        offset, size = raw["offset"], raw["size"]
        if offset > len(self.data) or size > len(self.data) - offset:
            raise FormatError(f"{name} are bytes {offset} to {offset + size} of a section of {len(self.data)}")
        return Stream(self.data[offset : offset + size], raw["coding"], raw["bits"], raw["step"])


class _Graphs:
    """The graphs of a file, each read when it is first named: a node has the graphs that it runs.

    No graph runs itself, directly or not, none is named twice, and none lies deeper than MAX_DEPTH, so that reading,
    planning and running them takes what the file's size allows.
    """

    def __init__(self, raw: list[dict[str, Any]], weights: _Weights):
        self.raw, self.weights = raw, weights
        self.done: dict[int, Graph] = {}
        self.heights: dict[int, int] = {}
        self.named: set[int] = set()
        self.open: list[int] = []

    def all(self) -> list[Graph]:
        return [self.read(index) for index in range(len(self.raw))]

    def read(self, index: int) -> Graph:
        if index not in self.done:
            self.heights[index] = 1
            self.open.append(index)
            self.done[index] = _graph(self.raw[index], self.weights, self, f"graph {index}")
            self.open.pop()
        return self.done[index]

    def named_by(self, index: int, place: str) -> Graph:
        """The graph that a node of the one being read runs."""
        if index >= len(self.raw):
            raise FormatError(f"{place}: graph {index} is none of the {len(self.raw)} there are")
        if index == 0 or index in self.open:
            raise FormatError(f"{place}: graph {index} runs itself")
        if index in self.named:
            raise FormatError(f"{place}: graph {index} is run by another node already")
        self.named.add(index)
        if len(self.open) < MAX_DEPTH:
            graph = self.read(index)
            outer = self.open[-1]
            self.heights[outer] = max(self.heights[outer], 1 + self.heights[index])
            if self.heights[outer] <= MAX_DEPTH:
                return graph
        raise FormatError(f"{place}: graphs are nested deeper than {MAX_DEPTH}")


def _graph(raw: dict[str, Any], weights: _Weights, graphs: _Graphs, place: str) -> Graph:
    tensors: list[Tensor] = []
    for i, stored in enumerate(raw["tensors"] or []):
        tensors.append(_tensor(stored, weights, f"{place}, tensor {i}", tensors))

    def pick(index: int, where: str) -> Tensor:
        if not 0 <= index < len(tensors):
            raise FormatError(f"{where}: tensor {index} is none of the {len(tensors)} there are")
        return tensors[index]

    graph = Graph(name=raw["name"] or "")
    graph.inputs, graph.input_names = _signature(raw, "input", pick, place)
    graph.outputs, graph.output_names = _signature(raw, "output", pick, place)
    available = {t for t in tensors if t.is_constant}
    for tensor, name in zip(graph.inputs, graph.input_names, strict=True):
        if tensor in available:
            raise FormatError(f"{place}: input '{name}' is a constant, or an input twice")
        available.add(tensor)
        tensor.name = name
    for i, n in enumerate(raw["nodes"] or []):
        node = _node(n, pick, graphs, f"{place}, node {i}")
        where = f"{place}, node {i} ({node})"
        for tensor in node.inputs:
            if tensor is not None and tensor not in available:
                raise FormatError(f"{where}: an input is computed later, or never")
        for output in node.outputs:
            if output in available:
                raise FormatError(f"{where}: an output is a constant, an input, or computed twice")
            available.add(output)
        graph.nodes.append(node)
    for tensor, name in zip(graph.outputs, graph.output_names, strict=True):
        if tensor not in available:
            raise FormatError(f"{place}: output '{name}' is never computed")
    _name_tensors(graph)
    graph.state = [pick(int(i), f"{place}, state") for i in (raw["state"] if raw["state"] is not None else ())]
    try:
        _check_state(graph, inference.infer(graph))
    except XnnError as error:
        raise FormatError(f"{place}: {error}") from None
    return graph


def _check_state(graph: Graph, known: inference.Inference) -> None:
    """Raise ShapeError where initial or next values are not what the inputs take."""
    count = len(graph.state)
    if count > min(len(graph.inputs), len(graph.outputs)):
        raise FormatError(f"{count} states of {len(graph.inputs)} inputs and {len(graph.outputs)} outputs")
    ends = zip(graph.state_names, graph.inputs[-count:], graph.outputs[-count:], graph.state, strict=False)
    for name, before, after, first in ends:
        if not first.is_constant:
            raise FormatError(f"state '{name}': its initial value is no constant")
        for what, kind in (("initial", first.type), ("next", known.types[after])):
            if kind.dtype != before.dtype:
                raise FormatError(f"state '{name}': its {what} value is {kind.dtype}, not {before.dtype}")
            calls.narrowed(kind.shape, before.shape, f"state '{name}': its {what} value")


def _name_tensors(graph: Graph) -> None:
    """Names for people: an output's own, otherwise that of the node which computes it."""
    for node in graph.nodes:
        for i, tensor in enumerate(node.outputs):
            tensor.name = node.name if i == 0 else f"{node.name}:{i}"
        for i, operand in enumerate(node.inputs):
            if operand is not None and operand.is_constant and not operand.name:
                operand.name = f"{node.name}/{i}"
    inputs = set(graph.inputs)
    for tensor, name in zip(graph.outputs, graph.output_names, strict=True):
        if tensor not in inputs:
            tensor.name = name


def _signature(raw: dict[str, Any], kind: str, pick, place: str) -> tuple[list[Tensor], list[str]]:
    indices = raw[kind + "s"] if raw[kind + "s"] is not None else np.zeros(0, np.int32)
    names = raw[kind + "_names"] or []
    if len(indices) != len(names):
        raise FormatError(f"{place}: {len(names)} names for {len(indices)} {kind}s")
    if len(set(names)) != len(names):
        raise FormatError(f"{place}: two {kind}s have the same name")
    return [pick(int(i), f"{place}, {kind} '{n}'") for i, n in zip(indices, names, strict=True)], list(names)


def _node(raw: dict[str, Any], pick, graphs: _Graphs, place: str) -> Node:
    op = ops.get(raw["op"])
    place = f"{place} ({op.name} '{raw['name'] or ''}')"
    stored_inputs = raw["inputs"] if raw["inputs"] is not None else ()
    inputs = [None if i == -1 else pick(int(i), place) for i in stored_inputs]
    outputs = [pick(int(i), place) for i in (raw["outputs"] if raw["outputs"] is not None else ())]
    fewest, most = op.inputs
    if len(inputs) < fewest or (most is not None and len(inputs) > most):
        raise FormatError(
            f"{place}: {len(inputs)} inputs; there are {fewest} to {'any number' if most is None else most}"
        )
    if any(tensor is None for tensor in inputs[:fewest]):
        raise FormatError(f"{place}: an input that cannot be left out is left out")
    if op.outputs is not None and len(outputs) != op.outputs:
        raise FormatError(f"{place}: {len(outputs)} outputs; there are {op.outputs}")
    attributes = _attributes(raw["attributes"], op, graphs, place)
    try:
        op.check(attributes)
    except XnnError as error:
        raise FormatError(f"{place}: {error}") from None
    return Node(op.name, inputs, outputs, attributes, raw["name"] or "")


def _attributes(raw: tuple[str, dict[str, Any]] | None, op: type[ops.Op], graphs: _Graphs, place: str):
    expected = None if op.Attributes is None else op.Attributes.__name__
    found = None if raw is None else raw[0]
    if found != expected:
        raise FormatError(f"{place}: attributes {found}, not {expected}")
    if raw is None or op.Attributes is None:
        return None
    values = {}
    for field in metadata.LAYOUT.tables[raw[0]]:
        value = raw[1][field.name]
        if field.type == "DType":
            value = dtypes.TO_NUMPY[value]
        elif field.type.startswith("["):
            value = () if value is None else tuple(value.tolist())
        elif field.type == "uint":
            value = graphs.named_by(value, f"{place}: {field.name}")
        elif field.type == "float" and np.isnan(value):
            raise FormatError(f"{place}: {field.name} is not a number")
        values[field.name] = value
    return getattr(attribute_tables, raw[0])(**values)


def _tensor(raw: dict[str, Any], weights: _Weights, place: str, before: Sequence[Tensor]) -> Tensor:
    """before: the tensors of the graph that were read."""
    dtype = dtypes.TO_NUMPY[raw["dtype"]]
    shape = None
    if raw["shape"] is not None:
        if len(raw["shape"]) > inference.MAX_RANK:
            raise FormatError(f"{place}: {len(raw['shape'])} dimensions are more than {inference.MAX_RANK}")
        if any(d < -1 for d in raw["shape"]):
            raise FormatError(f"{place}: shape {raw['shape'].tolist()}")
        shape = tuple(None if d == -1 else int(d) for d in raw["shape"])
    tensor = Tensor("", dtype, shape, _quantization(raw, dtype, shape, place))
    if raw["constant"] is not None:
        if shape is None or None in shape:
            raise FormatError(f"{place}: a constant of unknown shape")
        stored, kernel = raw["constant"], None
        if stored["factor"]:
            if not 0 < stored["kernel"] <= len(before):
                raise FormatError(f"{place}: expected from the tensor {stored['kernel']} before it, which there is not")
            kernel = before[-stored["kernel"]].constant
        try:
            tensor.constant = weights.constant(stored, shape, dtype, kernel)
        except FormatError as error:
            raise FormatError(f"{place}: {error}") from None
    return tensor


def _quantization(raw: dict[str, Any], dtype: np.dtype, shape, place: str) -> Quantization | None:
    scales, zero_points, axis = raw["channel_scales"], raw["channel_zero_points"], raw["channel_axis"]
    if scales is None:
        if raw["scale"] == 0 and raw["zero_point"] == 0:
            return None
        scales, zero_points = np.array([raw["scale"]], np.float32), np.array([raw["zero_point"]])
    else:
        rank = 0 if shape is None else len(shape)
        if not 0 <= axis < rank or shape[axis] != len(scales):
            raise FormatError(f"{place}: {len(scales)} scales along axis {axis} of shape {shape}")
        zero_points = np.zeros(len(scales), np.int64) if zero_points is None else zero_points
    if dtype.kind not in "iu":
        raise FormatError(f"{place}: {dtype} with a scale")
    if len(zero_points) != len(scales):
        raise FormatError(f"{place}: {len(zero_points)} zero points for {len(scales)} scales")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise FormatError(f"{place}: a scale that is not finite and greater than 0")
    limits = np.iinfo(dtype)
    if (zero_points < limits.min).any() or (zero_points > limits.max).any():
        raise FormatError(f"{place}: a zero point outside of {dtype}")
    return Quantization(scales, zero_points, axis)

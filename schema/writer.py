"""A model in memory to the bytes of an `.xnn` file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import flatbuffers
import numpy as np

from schema import container, dtypes, metadata, ops
from schema.coding import constant as constant_coding
from schema.coding.streams import EncodedConstant, Stream
from schema.generated import xnn_generated as fb
from schema.generated.layout import ENUMS, TABLES, UNIONS
from schema.graph import Constant, Graph, Model, Node, Tensor, nested

MAP_SIZE = 4096  # streams of this many bytes are aligned for mapping
READER_OF_CODING = {"RANS": 2, "GAPS": 4}  # the first reader version that knows a coding, where that is not 1
READER_OF_STEPS = 3
READER_OF_PREDICTIONS = 4
READER_OF_MASKS = 5
KERNEL, BIAS = 1, 2  # operands of
BIASED = frozenset(["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D", "FULLY_CONNECTED"])


class _Weights:
    """The weights section as it grows. Equal streams are stored once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.alignment = container.SMALL_ALIGNMENT
        self.offsets: dict[bytes, int] = {}
        self.minimum_reader = 1

    def add(self, stream: Stream, itemsize: int):
        data = bytes(stream.data)
        needed = READER_OF_STEPS if stream.step else READER_OF_CODING.get(stream.coding, 1)
        self.minimum_reader = max(self.minimum_reader, needed)
        align = itemsize
        if len(data) >= MAP_SIZE and stream.coding == "RAW":
            align = self.alignment = container.MAP_ALIGNMENT
        offset = self.offsets.get(data)
        if offset is None or offset % align:
            self.data += bytes(-len(self.data) % align)
            offset = self.offsets[data] = len(self.data)
            self.data += data
        coding = ENUMS["Coding"][stream.coding]
        return fb.StreamT(offset=offset, size=len(data), coding=coding, bits=stream.bits, step=stream.step)


class _Constants:
    """Constants as they are stored. Tensors that have the same one store it once."""

    def __init__(self, graphs: Iterable[Graph], weights: _Weights) -> None:
        self.weights = weights
        self.uses = Counter(t.constant for graph in graphs for t in graph.tensors() if t.constant is not None)
        self.stored: dict[Constant, tuple[EncodedConstant, Any]] = {}

    def add(self, tensor: Tensor, kernel: Tensor | None, before: int) -> Any:
        """kernel: the weights that a tensor is the biases of, `before` it among those of the graph."""
        constant = tensor.constant
        assert constant is not None
        if constant not in self.stored:
            given = None if kernel is None or self.uses[constant] > 1 else self._whole(kernel)
            encoded = constant_coding.encode(constant, tensor.dtype, given)
            self.stored[constant] = encoded, self._table(encoded, before)
        return self.stored[constant][1]

    def _whole(self, kernel: Tensor) -> Constant | None:
        """The kernel's constant as readers have it, if they have its values and channel scales apart."""
        constant = kernel.constant
        encoded = None if constant is None else self.stored[constant][0]
        if constant is None or encoded is None or encoded.channel_scale is None:
            return None
        return Constant(np.asarray(constant.values).astype(encoded.dtype), constant.channel_scale, encoded.axis)

    def _table(self, encoded: EncodedConstant, before: int) -> Any:
        itemsize = encoded.dtype.itemsize
        sizes = {"values": itemsize, "codebook": itemsize, "positions": 1, "channel_scale": 4}
        streams = {name: self.weights.add(s, 1 if s.bits or s.step else sizes[name]) for name, s in encoded.streams()}
        if encoded.factor or encoded.scale_factor:
            self.weights.minimum_reader = max(self.weights.minimum_reader, READER_OF_PREDICTIONS)
        return fb.ConstantT(
            dtype=ENUMS["DType"][dtypes.name_of(encoded.dtype)],
            values=streams["values"],
            codebook=streams.get("codebook"),
            positions=streams.get("positions"),
            nonzeros=encoded.nonzeros,
            channelScale=streams.get("channel_scale"),
            axis=encoded.axis,
            scaleFactor=encoded.scale_factor,
            kernel=before if encoded.factor else 0,
            factor=encoded.factor,
        )


def write(model: Model, flatbuffer: bool = False) -> bytes:
    """The file's bytes. Raises UnsupportedError for dtypes that cannot be stored.

    flatbuffer: metadata as a FlatBuffer even where columns are smaller, for those who read it by flatc's code.
    """
    weights = _Weights()
    inner = [graph for outer in model.graphs for graph in nested(outer)]
    graphs = {graph: index for index, graph in enumerate(dict.fromkeys([*model.graphs, *inner]))}
    constants = _Constants(graphs, weights)
    stored = [_graph(graph, graphs, constants) for graph in graphs]
    masked = any(n.op == "SOFTMAX" and any(n.inputs[1:]) for graph in graphs for n in graph.nodes)
    root = fb.ModelT(
        minimumReader=max(weights.minimum_reader, READER_OF_MASKS if masked else 1),
        requantization=ENUMS["Requantization"][model.requantization],
        producer=model.producer or None,
        graphs=stored,
        metadata=[fb.EntryT(key=k, value=v) for k, v in sorted(model.metadata.items())] or None,
    )
    builder = flatbuffers.Builder(1024)
    builder.Finish(root.Pack(builder), container.IDENTIFIER)
    tables = bytes(builder.Output())
    sections = {container.METADATA: tables} if flatbuffer else metadata.smallest(tables)
    if weights.data:
        sections[container.WEIGHTS] = bytes(weights.data)
    return container.pack(sections, weights.alignment)


def _graph(graph: Graph, graphs: dict[Graph, int], constants: _Constants):
    tensors = graph.tensors()
    index = {tensor: i for i, tensor in enumerate(tensors)}
    inputs = set(graph.inputs)
    kernels = {n.inputs[BIAS]: n.inputs[KERNEL] for n in graph.nodes if n.op in BIASED and len(n.inputs) > BIAS}
    stored: list[fb.TensorT] = []
    for i, tensor in enumerate(tensors):
        kernel = kernels.get(tensor)
        before = 0 if kernel is None else i - index[kernel]
        constant = constants.add(tensor, kernel if before > 0 else None, before) if tensor.is_constant else None
        stored.append(_tensor(tensor, tensor in inputs, constant))
    return fb.GraphT(
        name=graph.name,
        tensors=stored,
        nodes=[_node(node, index, graphs) for node in graph.nodes],
        inputs=[index[t] for t in graph.inputs],
        inputNames=list(graph.input_names),
        outputs=[index[t] for t in graph.outputs],
        outputNames=list(graph.output_names),
        state=[index[t] for t in graph.state] or None,
    )


def _tensor(tensor: Tensor, is_input: bool, constant: Any):
    stored = fb.TensorT(dtype=ENUMS["DType"][dtypes.name_of(tensor.dtype)], constant=constant)
    if (is_input or tensor.is_constant) and tensor.shape is not None:
        stored.shape = np.array([-1 if d is None else d for d in tensor.shape], np.int32)
    quantization = tensor.quantization
    if quantization is not None and quantization.per_channel:
        stored.channelScales = quantization.scale
        stored.channelAxis = quantization.axis
        if quantization.zero_point.any():
            stored.channelZeroPoints = quantization.zero_point.astype(np.int32)
    elif quantization is not None:
        stored.scale, stored.zeroPoint = float(quantization.scale[0]), int(quantization.zero_point[0])
    return stored


def _node(node: Node, index: dict[Tensor, int], graphs: dict[Graph, int]):
    stored = fb.NodeT(
        op=ENUMS["OpCode"][ops.get(node.op).name],
        name=node.name or None,
        inputs=np.array([-1 if t is None else index[t] for t in node.inputs], np.int32),
        outputs=np.array([index[t] for t in node.outputs], np.int32),
    )
    if node.attributes is not None:
        table = type(node.attributes).__name__
        stored.attributesType = UNIONS["Attributes"][table]
        stored.attributes = _attributes(node.attributes, table, graphs)
    return stored


def _attributes(attributes, table: str, graphs: dict[Graph, int]):
    stored = getattr(fb, table + "T")()
    for name, kind, _, _ in TABLES[table]:
        value = getattr(attributes, name)
        if kind == "DType":
            value = ENUMS["DType"][dtypes.name_of(value)]
        elif kind in ENUMS:
            value = ENUMS[kind][value]
        elif kind == "uint":
            value = graphs[value]
        elif kind.startswith("["):
            value = list(value) or None
        first, *rest = name.split("_")
        setattr(stored, first + "".join(word.capitalize() for word in rest), value)
    return stored

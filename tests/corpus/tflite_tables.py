"""Hostile `.tflite` files: name -> (file, what the refusal must say)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from schema import Quantization
from tests.support.tflite_files import FileBuilder


def network() -> FileBuilder:
    """A convolution, pooling, a reshape and a dense layer in int8."""
    rng = np.random.default_rng(3)
    b = FileBuilder()

    def activation(name, *shape):
        return b.tensor(np.int8, shape, None, Quantization(0.05, 3), name=name)

    x, y, z = activation("x", 1, 6, 6, 3), activation("conv", 1, 6, 6, 4), activation("pool", 1, 3, 3, 4)
    kernel = b.constant(rng.integers(-127, 128, (4, 3, 3, 3)), np.int8, Quantization([0.01, 0.02, 0.03, 0.04], 0, 0))
    bias = b.constant(rng.integers(-99, 99, 4), np.int32)
    options = tfl.Conv2DOptionsT()
    options.strideH = options.strideW = options.dilationHFactor = options.dilationWFactor = 1
    b.operator("CONV_2D", [x, kernel, bias], [y], options)
    options = tfl.Pool2DOptionsT()
    options.strideH = options.strideW = options.filterHeight = options.filterWidth = 2
    b.operator("MAX_POOL_2D", [y], [z], options)
    flat = activation("flat", 1, 36)
    b.operator("RESHAPE", [z, b.constant([1, 36], np.int32)], [flat])
    out = activation("scores", 1, 5)
    dense = b.constant(rng.integers(-127, 128, (5, 36)), np.int8, Quantization(0.01))
    b.operator("FULLY_CONNECTED", [flat, dense, -1], [out], tfl.FullyConnectedOptionsT())
    b.finish([x], [out])
    b.tensor(np.int8, (1,), None, Quantization(0.05, 3), name="unused")
    return b


def operator(b, index):
    return b.graph.operators[index]


def tensor(b, index):
    return b.graph.tensors[index]


# what is done to the model: the place and the reason
DAMAGES = {
    "operator code": (lambda b: setattr(operator(b, 0), "opcodeIndex", 9), "operator 0: operator code 9 is none"),
    "input too large": (lambda b: setattr(operator(b, 1), "inputs", [99]), "layer 'pool'.*: tensor 99 is none"),
    "input -2": (lambda b: setattr(operator(b, 1), "inputs", [-2]), "layer 'pool'.*: tensor -2 is none"),
    "input left out": (lambda b: setattr(operator(b, 1), "inputs", [-1]), "layer 'pool'.*left out"),
    "no inputs": (lambda b: setattr(operator(b, 1), "inputs", []), "layer 'pool'.*0 inputs"),
    "too many inputs": (lambda b: setattr(operator(b, 1), "inputs", [0, 0]), "layer 'pool'.*2 inputs"),
    "output too large": (lambda b: setattr(operator(b, 1), "outputs", [99]), "operator 1 .MAX_POOL_2D.: tensor 99"),
    "no outputs": (lambda b: setattr(operator(b, 1), "outputs", []), "operator 1 .MAX_POOL_2D. computes nothing"),
    "two outputs": (lambda b: setattr(operator(b, 1), "outputs", [2, 9]), "2 outputs"),
    "cycle": (lambda b: setattr(operator(b, 0), "inputs", [2, 3, 4]), "layer 'conv'.*'pool' is computed later"),
    "computed twice": (lambda b: setattr(operator(b, 1), "outputs", [1]), "'conv' is a constant, an input, or"),
    "constant computed": (lambda b: setattr(operator(b, 1), "outputs", [3]), "'t3' is a constant, an input, or"),
    "input of a constant": (lambda b: setattr(b.graph, "inputs", [3]), "subgraph's inputs: 't3' is a constant"),
    "input twice": (lambda b: setattr(b.graph, "inputs", [0, 0]), "subgraph's inputs: 'x' is .*twice"),
    "input out of range": (lambda b: setattr(b.graph, "inputs", [-1]), "subgraph's inputs: tensor -1"),
    "output never computed": (lambda b: setattr(b.graph, "inputs", [2]), "'x' is computed later, or never"),
    "outputs out of range": (lambda b: setattr(b.graph, "outputs", [77]), "subgraph's outputs: tensor 77"),
    "buffer": (lambda b: setattr(tensor(b, 3), "buffer", 99), "tensor 3 't3': buffer 99 is none"),
    "buffer too short": (lambda b: setattr(tensor(b, 3), "shape", [4, 3, 3, 4]), "tensor 3 't3': 108 bytes for shape"),
    "buffer too long": (lambda b: setattr(tensor(b, 3), "shape", [4, 3, 3, 2]), "tensor 3 't3': 108 bytes for shape"),
    "huge": (lambda b: setattr(tensor(b, 8), "shape", [2**31 - 1] * 8), "tensor 8 't8': 180 bytes for shape"),
    "huge input": (lambda b: setattr(tensor(b, 0), "shape", [1, 2**31 - 1, 2**31 - 1, 3]), "takes .* bytes"),
    "negative size": (lambda b: setattr(tensor(b, 3), "shape", [-4, 3, 3, 3]), "tensor 3 't3': shape"),
    "nine axes": (lambda b: setattr(tensor(b, 0), "shape", [1] * 9), "tensor 0 'x': 9 dimensions"),
    "wrong rank": (lambda b: setattr(tensor(b, 0), "shape", [6, 6, 3]), "CONV_2D 'conv': the input is"),
    "stride 0": (lambda b: setattr(operator(b, 0).builtinOptions, "strideH", 0), "CONV_2D 'conv': stride 0x1"),
    "negative stride": (lambda b: setattr(operator(b, 0).builtinOptions, "strideW", -1), "CONV_2D 'conv': stride 1x-1"),
    "dilation 0": (lambda b: setattr(operator(b, 0).builtinOptions, "dilationHFactor", 0), "CONV_2D 'conv': dilation"),
    "filter 0": (lambda b: setattr(operator(b, 1).builtinOptions, "filterHeight", 0), "MAX_POOL_2D 'pool': filter"),
    "padding": (lambda b: setattr(operator(b, 0).builtinOptions, "padding", 7), "padding: 7 is no Padding"),
    "activation": (
        lambda b: setattr(operator(b, 0).builtinOptions, "fusedActivationFunction", 99),
        "fused_activation_function: 99 is no ActivationFunctionType",
    ),
    "dtype": (lambda b: setattr(tensor(b, 0), "type", 99), r"tensors\[0\].type: 99 is no TensorType"),
    "other dtype": (
        lambda b: setattr(tensor(b, 1), "type", tfl.TensorType.INT32),
        "'conv' is declared int32, computed",
    ),
    "scale 0": (lambda b: setattr(tensor(b, 0).quantization, "scale", [0.0]), "tensor 0 'x': a scale that is not"),
    "scale NaN": (lambda b: setattr(tensor(b, 0).quantization, "scale", [np.nan]), "tensor 0 'x': a scale that is not"),
    "scale -1": (lambda b: setattr(tensor(b, 0).quantization, "scale", [-1.0]), "tensor 0 'x': a scale that is not"),
    "zero point": (lambda b: setattr(tensor(b, 0).quantization, "zeroPoint", [200]), "a zero point outside of int8"),
    "scales": (lambda b: setattr(tensor(b, 3).quantization, "scale", [1.0] * 3), "zero points for 3 scales"),
    "scale axis": (lambda b: setattr(tensor(b, 3).quantization, "quantizedDimension", 1), "4 scales along axis 1"),
    "negative axis": (lambda b: setattr(tensor(b, 3).quantization, "quantizedDimension", -1), "4 scales along axis -1"),
    "no quantization": (
        lambda b: setattr(tensor(b, 1), "quantization", None),
        "CONV_2D 'conv': 'conv' is int8 without a scale",
    ),
    "shape operand": (lambda b: b.model.buffers.__setitem__(3, b.model.buffers[2]), "."),
    "null options": (lambda b: setattr(operator(b, 0), "builtinOptions", None), "CONV_2D 'conv': stride 0x0"),
    "version": (lambda b: setattr(b.model, "version", 2), "version 2 of the TFLite format"),
    "no subgraph": (lambda b: setattr(b.model, "subgraphs", []), "no subgraph"),
    "no buffers": (lambda b: setattr(b.model, "buffers", None), "buffer 0 is none of the 0"),
    "outside buffer": (
        lambda b: (setattr(b.model.buffers[1], "offset", 2**63), setattr(b.model.buffers[1], "size", 2**63)),
        "tensor 3 't3': bytes .* are outside",
    ),
    "operators unknown": (lambda b: setattr(b.model.operatorCodes[0], "builtinCode", 30000), "number 30000"),
    "operators negative": (
        lambda b: (
            setattr(b.model.operatorCodes[0], "builtinCode", -5),
            setattr(b.model.operatorCodes[0], "deprecatedBuiltinCode", -7),
        ),
        "operator code 0: a builtin operator of number -5",
    ),
}


def one(op, shapes, options=None, dtype=np.float32) -> bytes:
    """One operator on inputs of these shapes; its output is of no account."""
    b = FileBuilder()
    inputs = [b.tensor(dtype, shape) for shape in shapes]
    out = b.tensor(dtype, (1,), name="out")
    b.operator(op, inputs, [out], options)
    return b.finish(inputs, [out])


def with_fields(table, **fields):
    for name, value in fields.items():
        setattr(table, name, value)
    return table


OPERATORS: list[tuple[bytes, str]] = [
    (one("SPACE_TO_DEPTH", [(1, 4, 4, 1)], with_fields(tfl.SpaceToDepthOptionsT(), blockSize=0)), "block"),
    (one("CONCATENATION", [(2, 3)], with_fields(tfl.ConcatenationOptionsT(), axis=-3)), "axis -3"),
    (one("SPLIT", [(), (2, 3)], with_fields(tfl.SplitOptionsT(), numSplits=0)), "0 outputs"),
    (one("SPLIT", [(), (2, 3)], with_fields(tfl.SplitOptionsT(), numSplits=2**31 - 1)), "outputs"),
    (one("GATHER", [(2, 3), (2,)], with_fields(tfl.GatherOptionsT(), batchDims=-5), np.int32), "batch_dims -5"),
    (one("SVDF", [(1, 3), (4, 3), (4, 2)], with_fields(tfl.SVDFOptionsT(), rank=0)), "rank"),
    (one("CONV_2D", [(1, 4, 4, 3), (2, 1, 1, 0)], with_fields(tfl.Conv2DOptionsT(), strideH=1, strideW=1)), "."),
    (
        one("CONV_2D", [(1, 4, 4, 3), (2, 1, 1, 2)], with_fields(tfl.Conv2DOptionsT(), strideH=1, strideW=1)),
        "group",
    ),
    (one("FULLY_CONNECTED", [(2, 3), (4, 0)], tfl.FullyConnectedOptionsT()), "."),
    (one("PACK", [], tfl.PackOptionsT()), "0 inputs"),
    (one("UNPACK", [(2, 3)], with_fields(tfl.UnpackOptionsT(), num=-1)), "-1 outputs"),
    (one("SOFTMAX", [(2, 3)], with_fields(tfl.SoftmaxOptionsT(), beta=np.nan)), "beta"),
    (one("MUL", [(2, 3), (4, 3)]), "."),
]
"""Operators that make no sense by themselves."""


def sparse(indices: list[int], order: list[int] | None = None, size: int = 3) -> bytes:
    """A constant of (3, 4) in rows, added to an input."""
    b = FileBuilder()
    dense, compressed = tfl.DimensionMetadataT(), tfl.DimensionMetadataT()
    dense.format, dense.denseSize = tfl.DimensionType.DENSE, size
    compressed.format = tfl.DimensionType.SPARSE_CSR
    for field, values in (("arraySegments", [0, 1, 2, 3]), ("arrayIndices", indices)):
        vector = tfl.Int32VectorT()
        vector.values = np.array(values, np.int32)
        setattr(compressed, field, vector)
        setattr(compressed, f"{field}Type", tfl.SparseIndexVector.Int32Vector)
    layout = tfl.SparsityParametersT()
    layout.traversalOrder, layout.dimMetadata = order or [0, 1], [dense, compressed]
    x, out = b.tensor(np.float32, (3, 4)), b.tensor(np.float32, (3, 4), name="sum")
    w = b.tensor(np.float32, (3, 4), np.arange(1, 4, dtype=np.float32), name="sparse", sparsity=layout)
    b.operator("ADD", [x, w], [out], tfl.AddOptionsT())
    return b.finish([x], [out])


def signed(inputs: list[tuple[str, int]], subgraph: int = 0) -> bytes:
    """A file whose signature names its inputs so."""
    b = FileBuilder()
    x, y, out = (b.tensor(np.float32, (2, 3), name=name) for name in ("x", "y", "sum"))
    b.operator("ADD", [x, y], [out], tfl.AddOptionsT())
    b.finish([x, y], [out])
    b.signature("serving", {}, {"sum": out}, subgraph)
    maps = []
    for name, index in inputs:
        entry = tfl.TensorMapT()
        entry.name, entry.tensorIndex = name, index
        maps.append(entry)
    b.model.signatureDefs[0].inputs = maps
    return b.pack()


def moved(content: bytes, field: int, by: int) -> bytes:
    """The file with the offset of one of the root table's fields changed."""
    data = np.frombuffer(content, np.uint8).copy()

    def number(at: int, dtype: str) -> Any:
        return data[at : at + np.dtype(dtype).itemsize].view(dtype)

    root = int(number(0, "<u4")[0])
    vtable = root - int(number(root, "<i4")[0])
    number(root + int(number(vtable + 4 + 2 * field, "<u2")[0]), "<u4")[:] += np.uint32(by)
    return data.tobytes()


def cases() -> Iterator[tuple[str, bytes, str]]:
    """(name, file, a regular expression that the refusal matches)."""
    sound = network().pack()
    for name, (change, message) in DAMAGES.items():
        b = network()
        change(b)
        yield name, b.pack(), message
    for number, (content, message) in enumerate(OPERATORS):
        yield f"operator {number}", content, message
    for size in range(0, len(sound) - 16, 16):
        yield f"truncated at {size}", sound[:size], "."
    for root in (0, 2, len(sound), 2**31, 2**32 - 4):
        yield f"root at {root}", root.to_bytes(4, "little") + sound[4:], "Model"
    root = int.from_bytes(sound[:4], "little")
    for by in (1, 2):
        yield f"root moved by {by}", (root + by).to_bytes(4, "little") + sound[4:], "Model"
    for field, name in ((1, "operator codes"), (2, "subgraphs"), (4, "buffers")):
        for by in (1, 2, 1 << 20, (1 << 32) - 4):
            yield f"{name} moved by {by}", moved(sound, field, by), "Model"
    yield "sparse index past the tensor", sparse([0, 4, 1]), "'sparse'.*sparse index is outside"
    yield "negative sparse index", sparse([0, -1, 1]), "'sparse'.*sparse index is outside"
    yield "sparse axis twice", sparse([0, 1, 2], [0, 0]), "'sparse'.*sparse axes"
    yield "huge sparse rows", sparse([0, 1, 2], size=2**31 - 1), "'sparse'"
    yield "duplicated names", signed([("a", 0), ("a", 1)]), "signature 0: two of its inputs have one name"
    yield "signature of no tensor", signed([("a", 0), ("b", 99)]), "."
    yield "signature of no subgraph", signed([("a", 0), ("b", 1)], subgraph=7), "subgraph"
    for other, data in (("empty", b""), ("identifier alone", b"TFL3"), ("zeros", bytes(8)), ("ones", b"\xff" * 64)):
        yield other, data, "."
    yield "another format", b"\x1c\0\0\0XNN1" + bytes(99), "."


CASES = {name: (content, message) for name, content, message in cases()}

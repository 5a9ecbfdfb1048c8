"""Sound models of every kind of op, each a few nodes: what mutations start from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from schema import Graph, Model, Node, Quantization, Tensor, ops, write
from schema.ops import attributes as a
from schema.ops.elementwise import Binary, Comparison, Unary
from tests.support import control_flow

SEED = 20
INT8 = np.dtype(np.int8)


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def _ints(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


def single(
    op: str,
    inputs: list[Any],
    attributes: Any = None,
    outputs: list[tuple[Any, Quantization | None]] | None = None,
    name: str = "",
) -> Graph:
    """One node. Inputs are Tensors without a constant (the graph's inputs), arrays (stored), or None."""
    kind = ops.get(op)
    if attributes is None and kind.Attributes is not None:
        attributes = kind.Attributes()
    operands = [Tensor.from_array("c", t) if isinstance(t, np.ndarray | np.generic) else t for t in inputs]
    fed = list(dict.fromkeys(t for t in operands if t is not None and not t.is_constant))
    produced = [Tensor("y", d, None, q) for d, q in outputs or [(np.float32, None)]]
    return Graph(
        [Node(op, operands, produced, attributes, name or op.lower())],
        fed,
        [f"x{i}" for i in range(len(fed))],
        produced,
        [f"y{i}" for i in range(len(produced))],
        "serving",
    )


def x(*shape: int | None, dtype: Any = np.float32, quantization: Quantization | None = None) -> Tensor:
    return Tensor("x", dtype, shape, quantization)


def quantized(array: np.ndarray, quantization: Quantization) -> Tensor:
    return Tensor.from_array("w", array, quantization)


def _movement() -> Iterator[Graph]:
    yield single("TILE", [x(2, 3), _ints(2, 2)])
    yield single("PAD", [x(2, 3), _ints([1, 0], [2, 1])])
    yield single("PADV2", [x(2, 3), _ints([1, 0], [2, 1]), np.float32(3).reshape(())])
    yield single("MIRROR_PAD", [x(4, 3), _ints([1, 1], [1, 0])])
    yield single("BROADCAST_TO", [x(1, 3), _ints(4, 3)])
    yield single("FILL", [_ints(2, 3), x()])
    yield single("RESHAPE", [x(2, 6), _ints(3, -1)])
    yield single("TRANSPOSE", [x(2, 3, 4), _ints(2, 0, 1)])
    yield single("SLICE", [x(4, 5), _ints(1, 0), _ints(2, -1)])
    yield single("STRIDED_SLICE", [x(4, 5), _ints(0, 1), _ints(4, 5), _ints(1, 2)])
    yield single("STRIDED_SLICE", [x(4, 5), _ints(-1, 1), _ints(-9, 5), _ints(-2, 2)])
    yield single("SPLIT", [_ints(1).reshape(()), x(2, 6)], a.SplitAttributes(2), [(np.float32, None)] * 2)
    yield single(
        "SPLIT_V", [x(2, 6), _ints(4, 2), _ints(1).reshape(())], a.SplitAttributes(2), [(np.float32, None)] * 2
    )
    yield single("PACK", [x(2, 3), x(2, 3)], a.AxisAttributes(1))
    yield single("UNPACK", [x(2, 3)], a.UnpackAttributes(2, 0), [(np.float32, None)] * 2)
    yield single("CONCATENATION", [x(2, 3), x(2, 1)], a.AxisAttributes(1))
    yield single("GATHER", [x(4, 3), _ints(3, 0, 1)])
    yield single("GATHER", [x(4, 3), x(2, dtype=np.int32)], a.GatherAttributes(0, 0))
    yield single("GATHER_ND", [x(4, 3), _ints([1, 2], [0, 0])])
    yield single("EXPAND_DIMS", [x(4, 3), _ints(1).reshape(())])
    yield single("SQUEEZE", [x(4, 1, 3)], a.SqueezeAttributes((1,)))
    yield single("REVERSE_V2", [x(4, 3), _ints(1)])
    yield single("SPACE_TO_DEPTH", [x(1, 4, 4, 2)], a.BlockSizeAttributes(2))
    yield single("DEPTH_TO_SPACE", [x(1, 2, 2, 8)], a.BlockSizeAttributes(2))
    yield single("SPACE_TO_BATCH_ND", [x(1, 4, 4, 2), _ints(2, 2), _ints([0, 0], [1, 1])])
    yield single("BATCH_TO_SPACE_ND", [x(4, 2, 2, 2), _ints(2, 2), _ints([0, 0], [1, 0])])
    yield single("RESIZE_BILINEAR", [x(1, 3, 3, 2), _ints(5, 4)])
    yield single("RESIZE_NEAREST_NEIGHBOR", [x(1, 3, 3, 2), _ints(5, 4)])
    yield single("ONE_HOT", [x(3, dtype=np.int32), _ints(4).reshape(()), np.float32(1).reshape(()),
                             np.float32(0).reshape(())], a.AxisAttributes(-1))  # fmt: skip
    yield single("RANGE", [x(dtype=np.int32), _ints(9).reshape(()), _ints(2).reshape(())], None, [(np.int32, None)])
    yield single("SELECT_V2", [x(2, 1, dtype=np.bool_), x(2, 3), x(3)])
    yield single("CUMSUM", [x(2, 5), _ints(1).reshape(())])
    yield single("CAST", [x(2, 5)], a.DTypeAttributes(np.dtype(np.int32)), [(np.int32, None)])


def _arithmetic() -> Iterator[Graph]:
    for op in ("ADD", "MUL", "DIV", "MAXIMUM", "SQUARED_DIFFERENCE", "POW"):
        yield single(op, [x(2, 3), x(3)])
    for op in ("FLOOR_DIV", "FLOOR_MOD", "ADD"):
        yield single(op, [x(2, 3, dtype=np.int32), x(3, dtype=np.int32)], None, [(np.int32, None)])
    for op in ("EXP", "GELU", "HARD_SWISH", "LEAKY_RELU", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "CLAMP", "ELU"):
        yield single(op, [x(None, 5)])
    yield single("PRELU", [x(2, 3), np.full(3, 0.5, np.float32)])
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        yield single(op, [x(2, 3, 4), _ints(1, -1)], a.ReduceAttributes(True))
    for op in ("ARG_MAX", "ARG_MIN"):
        yield single(op, [x(2, 5), _ints(1).reshape(())], None, [(np.int64, None)])
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield single(op, [x(None, 5, 5, 2)], a.Pool2DAttributes(3, 2, 2, 1, "SAME"))
    yield single("MAX_POOL_3D", [x(1, 4, 4, 4, 2)], a.Pool3DAttributes(2, 2, 2))


def _simple() -> Iterator[Graph]:
    """Every op of one or two operands that needs no more than numbers."""
    for name in ops.NAMES:
        kind = ops.get(name)
        if kind.Attributes in (None, a.ArithmeticAttributes) and issubclass(kind, Unary | Binary):
            dtypes = [np.dtype(np.bool_)] if np.dtype(np.float32) not in kind.dtypes else [np.dtype(np.float32)]
            operands = [x(2, 3, dtype=dtypes[0]) for _ in range(kind.inputs[0])]
            result = np.bool_ if issubclass(kind, Comparison) or dtypes[0] == np.bool_ else np.float32
            yield single(name, operands, None, [(result, None)])


def _selection(rng: np.random.Generator) -> Iterator[Graph]:
    yield single("TOPK_V2", [x(2, 5), _ints(3).reshape(())], None, [(np.float32, None), (np.int32, None)])
    yield single("WHERE", [x(2, 3)], None, [(np.int64, None)])
    yield single("SCATTER_ND", [_ints([1, 2], [0, 0]), x(2), _ints(3, 4)])
    yield single("SCATTER_ND", [x(2, 1, dtype=np.int32), _values(rng, (2, 3)), _ints(4, 3)])
    yield single("RANK", [x(2, 3)], None, [(np.int32, None)])
    yield single("LOCAL_RESPONSE_NORMALIZATION", [x(1, 2, 2, 9)])
    yield single("AVERAGE_POOL_3D", [x(1, 4, 4, 4, 2)], a.Pool3DAttributes(2, 2, 2, padding="SAME"))
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        yield single(op, [x(2, 3, dtype=np.bool_), _ints(1)], None, [(np.bool_, None)])


def _recurrent(rng: np.random.Generator) -> Iterator[Graph]:
    made = [(np.float32, None)]
    rnn = [x(2, 3, 4), _values(rng, (5, 4)), _values(rng, (5, 5)), _values(rng, (5,)), None]
    yield single("UNIDIRECTIONAL_SEQUENCE_RNN", rnn, None, made * 2)
    weights = [_values(rng, (5, size)) for size in (4, 5) for _ in range(4)]
    biases = [_values(rng, (5,)) for _ in range(4)]
    lstm = [x(2, 3, 4), *weights, None, None, None, *biases, *[None] * 8]
    yield single("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm, None, made * 3)
    svdf = [x(2, 4), _values(rng, (6, 4)), _values(rng, (6, 3)), _values(rng, (3,)), None]
    yield single("SVDF", svdf, a.SVDFAttributes(2), made * 2)


def _integer_recurrent(rng: np.random.Generator) -> Iterator[Graph]:
    given, cell, made = Quantization(0.02, 3), Quantization(2.0**-12), Quantization(0.01, -5)

    def weights(*shape: int, dtype: Any = np.int8) -> Tensor:
        return quantized(rng.integers(-127, 128, shape).astype(dtype), Quantization(rng.uniform(0.001, 0.01)))

    sequence = x(2, 3, 4, dtype=np.int8, quantization=given)
    gates = [weights(5, size) for size in (4, 3) for _ in range(4)]
    peepholes, norms = ([weights(5, dtype=np.int16) for _ in range(n)] for n in (3, 4))
    biases = [weights(5, dtype=np.int32) for _ in range(4)]
    projection = [weights(3, 5), weights(3, dtype=np.int32)]
    attributes = a.LSTMAttributes(False, 0.5, 0.3, "TANH", 0.01, 4, (0.001, 0.002, 0.001, 0.003))
    lstm = [sequence, *gates, *peepholes, *biases, *projection, None, None, *norms]
    yield single("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm, attributes, [(INT8, made), (INT8, made), (np.int16, cell)])
    step, state = x(2, 4, dtype=np.int8, quantization=given), Quantization(0.001)
    svdf = [step, weights(6, 4), weights(6, 3, dtype=np.int16), weights(3, dtype=np.int32), None]
    yield single("SVDF", svdf, a.SVDFAttributes(2, "RELU"), [(INT8, made), (np.int16, state)])


def _boxes(rng: np.random.Generator) -> Iterator[Graph]:
    corners = np.sort(rng.uniform(0, 1, (6, 2, 2)), axis=1).reshape(6, 4).astype(np.float32)
    given = [corners, x(6), _ints(4).reshape(()), *(np.float32(v).reshape(()) for v in (0.5, 0.1, 0.2))]
    yield single("NON_MAX_SUPPRESSION_V5", given, None, [(np.int32, None), (np.float32, None), (np.int32, None)])
    attributes = a.DetectionPostprocessAttributes(4, 1, 100, 2, 0.1, 0.5, 10.0, 10.0, 5.0, 5.0)
    for regular in (False, True):
        found = dataclasses.replace(attributes, regular=regular)
        operands = [corners.reshape(1, 6, 4), x(1, 6, 3), np.abs(_values(rng, (6, 4)))]
        yield single("DETECTION_POSTPROCESS", operands, found, [(np.float32, None)] * 4)


def _int16(rng: np.random.Generator) -> Iterator[Graph]:
    given, unit = Quantization(2e-4), Quantization(1 / 32768)

    def flat() -> Tensor:
        return x(None, 5, dtype=np.int16, quantization=given)

    kernel = quantized(rng.integers(-127, 128, (4, 5)).astype(np.int8), Quantization(rng.uniform(0.01, 0.1, 4)))
    for bias in (np.int64, np.int32):
        operands = [flat(), kernel, quantized(_values(rng, (4,), bias), Quantization(1e-5))]
        yield single("FULLY_CONNECTED", operands, None, [(np.int16, given)])
    for op in ("ADD", "MUL", "MAXIMUM"):
        yield single(op, [flat(), flat()], None, [(np.int16, given)])
    for op in ("LOGISTIC", "TANH", "SOFTMAX"):
        yield single(op, [flat()], None, [(np.int16, unit)])
    for op in ("EXP", "RSQRT", "LEAKY_RELU", "RELU"):
        yield single(op, [flat()], None, [(np.int16, given)])
    yield single("QUANTIZE", [flat()], a.DTypeAttributes(INT8), [(INT8, Quantization(0.05))])


def _linear(rng: np.random.Generator) -> Iterator[Graph]:
    bias = _values(rng, (4,))
    explicit = a.Conv2DAttributes(2, 1, 1, 2, "EXPLICIT", (1, 0, 2, 1), "CLAMP", -1.0, 2.5)
    yield single("CONV_2D", [x(None, 6, 6, 3), _values(rng, (4, 3, 3, 3)), bias], explicit)
    yield single("CONV_2D", [x(1, 6, 6, 4), _values(rng, (4, 3, 3, 2)), None], a.Conv2DAttributes(padding="SAME"))
    yield single("DEPTHWISE_CONV_2D", [x(1, 6, 6, 2), _values(rng, (1, 3, 3, 4)), bias], a.Conv2DAttributes())
    yield single("TRANSPOSE_CONV", [_ints(1, 6, 6, 4), _values(rng, (4, 3, 3, 2)), x(1, 3, 3, 2), bias],
                 a.Conv2DAttributes(2, 2, padding="SAME"))  # fmt: skip
    yield single("CONV_3D", [x(1, 4, 4, 4, 2), _values(rng, (2, 2, 2, 2, 4)), bias])
    yield single("CONV_3D_TRANSPOSE", [_ints(1, 4, 4, 4, 4), _values(rng, (2, 2, 2, 4, 2)), x(1, 2, 2, 2, 2)],
                 a.Conv3DAttributes(2, 2, 2, padding="SAME"))  # fmt: skip
    yield single("FULLY_CONNECTED", [x(None, 5), _values(rng, (4, 5)), bias], a.FullyConnectedAttributes(True, "RELU6"))
    yield single("BATCH_MATMUL", [x(2, 3, 4), x(2, 5, 4)], a.BatchMatMulAttributes(False, True))
    clustered = rng.choice(_values(rng, (3,)), (4, 96)) * (rng.random((4, 96)) < 0.2)
    yield single("FULLY_CONNECTED", [x(None, 96), clustered.astype(np.float32), bias])


def _int8(rng: np.random.Generator) -> Iterator[Graph]:
    given, result = Quantization(0.05, -3), Quantization(0.1, 5)

    def image() -> Tensor:
        return x(1, 6, 6, 3, dtype=np.int8, quantization=given)

    def weights(*shape: int, axis: int = 0) -> Tensor:
        scale = rng.uniform(0.01, 0.1, shape[axis])
        return quantized(rng.integers(-127, 128, shape).astype(np.int8), Quantization(scale, 0, axis))

    def flat() -> Tensor:
        return x(None, 5, dtype=np.int8, quantization=given)

    bias = quantized(_values(rng, (4,), np.int32), Quantization(0.005))
    made = [(INT8, result)]
    yield single("CONV_2D", [image(), weights(4, 3, 3, 3), bias], a.Conv2DAttributes(padding="SAME"), made)
    bias3 = quantized(_values(rng, (3,), np.int32), Quantization(0.005))
    yield single("DEPTHWISE_CONV_2D", [image(), weights(1, 3, 3, 3, axis=3), bias3], a.Conv2DAttributes(), made)
    yield single("FULLY_CONNECTED", [flat(), weights(4, 5), bias], None, made)
    for op in ("ADD", "MUL", "SUB", "MAXIMUM", "DIV", "POW", "FLOOR_MOD"):
        q = given if op == "MAXIMUM" else result
        yield single(op, [flat(), flat()], None, [(INT8, q)])
    for op in ("LEAKY_RELU", "TANH", "RELU6", "HARD_SWISH", "ABS", "EXP"):
        yield single(op, [flat()], None, [(INT8, Quantization(1 / 128, 0) if op == "TANH" else result)])
    yield single("SOFTMAX", [flat()], None, [(INT8, Quantization(1 / 256, -128))])
    yield single("LOG_SOFTMAX", [flat()], None, [(INT8, Quantization(1 / 16, 127))])
    yield single("MEAN", [image(), _ints(1, 2)], a.ReduceAttributes(), made)
    yield single("SUM", [image(), _ints(1, 2)], a.ReduceAttributes(), made)
    yield single("AVERAGE_POOL_2D", [image()], a.Pool2DAttributes(2, 2, 2, 2), [(INT8, given)])
    yield single("QUANTIZE", [x(2, 3)], a.DTypeAttributes(INT8), made)
    yield single("QUANTIZE", [flat()], a.DTypeAttributes(INT8), made)
    yield single("DEQUANTIZE", [flat()])
    yield single("RESIZE_BILINEAR", [image(), _ints(9, 5)], None, [(INT8, given)])
    yield single("PRELU", [flat(), quantized(_values(rng, (5,), np.int8), result)], None, made)
    yield single("BATCH_MATMUL", [x(2, 3, 4, dtype=np.int8, quantization=given),
                                  x(2, 4, 5, dtype=np.int8, quantization=result)], None, made)  # fmt: skip


def _networks(rng: np.random.Generator) -> Iterator[Graph]:
    """Several nodes: shape arithmetic that depends on the batch, sizes that depend on data."""
    image, shape, batch, size = (Tensor(n, d) for n, d in zip("xsbr", (np.float32, *[np.int32] * 3), strict=True))
    image.shape = (None, 4, 4, 2)
    flat, dense, soft = (Tensor(n, np.float32) for n in ("flat", "dense", "soft"))
    one = Tensor.from_array("one", _ints(1))
    nodes = [
        Node("SHAPE", [image], [shape], a.DTypeAttributes(np.dtype(np.int32)), "shape"),
        Node(
            "STRIDED_SLICE",
            [shape, Tensor.from_array("b", _ints(0)), one, one],
            [batch],
            a.StridedSliceAttributes(shrink_axis_mask=1),
            "batch",
        ),
        Node("PACK", [batch, Tensor.from_array("n", _ints(32).reshape(()))], [size], a.AxisAttributes(0), "size"),
        Node("RESHAPE", [image, size], [flat], None, "flatten"),
        Node(
            "FULLY_CONNECTED",
            [flat, Tensor.from_array("w", _values(rng, (3, 32)))],
            [dense],
            a.FullyConnectedAttributes(),
            "dense",
        ),
        Node("SOFTMAX", [dense], [soft], a.SoftmaxAttributes(), "softmax"),
    ]
    yield Graph(nodes, [image], ["image"], [soft], ["probabilities"], "serving")
    count, steps, real = Tensor("n", np.int32, ()), Tensor("r", np.int32), Tensor("y", np.float32)
    zero, unit = (Tensor.from_array("c", _ints(v).reshape(())) for v in (0, 1))
    nodes = [
        Node("RANGE", [zero, count, unit], [steps], None, "range"),
        Node("CAST", [steps], [real], a.DTypeAttributes(), "cast"),
    ]
    yield Graph(nodes, [count], ["count"], [real], ["steps"], "serving")


def _control_flow() -> Iterator[Graph]:
    yield control_flow.branching()
    yield control_flow.looping()
    yield control_flow.looping(3, control_flow.growing())
    yield control_flow.looping(3, shape=(2,))
    yield control_flow.nested(3)
    yield control_flow.counter(1.0)


def graphs() -> list[Graph]:
    """All of them, each call anew."""
    rng = np.random.default_rng(SEED)
    return [
        *_movement(), *_arithmetic(), *_simple(), *_selection(rng), *_linear(rng), *_recurrent(rng), *_int8(rng),
        *_int16(rng), *_networks(rng), *_control_flow(), *_integer_recurrent(rng), *_boxes(rng),
    ]  # fmt: skip


def files() -> dict[str, bytes]:
    """By name. Metadata are FlatBuffers, so that what changes a byte changes a field."""
    return {
        f"{i:02d}-{g.nodes[0].op.lower()}": write(Model([g], producer="corpus"), flatbuffer=True)
        for i, g in enumerate(graphs())
    }

"""One operator at a time, for each that is the schema's by name, in each dtype it has."""

from __future__ import annotations

from typing import Any

import numpy as np

from schema import Quantization
from schema.ops import attributes as a
from tests.support.litert import Operand

FLOAT32, INT8, INT32, INT64, BOOL = (np.dtype(name) for name in ("float32", "int8", "int32", "int64", "bool"))
FLAT = Quantization(0.05, 3)
OTHER = Quantization(0.07, -11)
WIDE = Quantization(0.6, 5)


class Case:
    """An op's attributes, its operands for a random generator, and the quantization of its outputs."""

    def __init__(self, attributes: Any, *operands: Any, outputs: Any = None, many: int = 1):
        self.attributes, self.operands, self.outputs, self.many = attributes, operands, outputs, many

    def draw(self, rng: np.random.Generator) -> list[Operand | None]:
        return [given(rng) if callable(given) else given for given in self.operands]


def x(*shape: int, low: float = -3.0, high: float = 3.0):
    return lambda rng: Operand(rng.uniform(low, high, shape).astype(np.float32))


def q(*shape: int, by: Quantization = FLAT, low: int = -128):
    return lambda rng: Operand(rng.integers(low, 128, shape).astype(np.int8), by)


def i(*shape: int, low: int = -9, high: int = 9, dtype: Any = INT32):
    return lambda rng: Operand(rng.integers(low, high, shape).astype(dtype))


def b(*shape: int):
    return lambda rng: Operand(rng.random(shape) < 0.5)


def index(*values: Any):
    return Operand(np.array(values[0] if len(values) == 1 else values, np.int32), None, True)


def weights(*shape: int):
    return lambda rng: Operand(rng.uniform(-1, 1, shape).astype(np.float32), None, True)


def q_weights(*shape: int, axis: int = 0):
    """Symmetric int8, a scale for each channel."""

    def given(rng):
        values = rng.integers(-127, 128, shape).astype(np.int8)
        return Operand(values, Quantization(rng.uniform(0.001, 0.02, shape[axis]), 0, axis), True)

    return given


def q_bias(channels: int):
    return lambda rng: Operand(rng.integers(-2000, 2000, channels).astype(np.int32), None, True)


CONV = a.Conv2DAttributes(stride_h=2, padding="SAME", activation="RELU6")
DILATED = a.Conv2DAttributes(dilation_h=2, dilation_w=3)
POOL = a.Pool2DAttributes(filter_h=3, filter_w=2, stride_h=2, stride_w=1, padding="SAME", activation="RELU")
CONV3 = a.Conv3DAttributes(stride_d=2, padding="SAME", activation="RELU")
RELU = a.ArithmeticAttributes("RELU")
PLAIN = a.ArithmeticAttributes()
KEEP, DROP = a.ReduceAttributes(True), a.ReduceAttributes(False)
SLICING = a.StridedSliceAttributes(begin_mask=1, end_mask=2, shrink_axis_mask=4)

CASES: dict[str, list[Case]] = {
    "CONV_2D": [
        Case(CONV, x(2, 9, 7, 3), weights(5, 3, 2, 3), weights(5)),
        Case(DILATED, x(1, 9, 11, 3), weights(5, 3, 3, 3), weights(5)),
        Case(CONV, q(2, 9, 7, 3), q_weights(5, 3, 2, 3), q_bias(5), outputs=OTHER),
    ],
    "DEPTHWISE_CONV_2D": [
        Case(CONV, x(2, 9, 7, 3), weights(1, 3, 2, 6), weights(6)),
        Case(CONV, q(2, 9, 7, 3), q_weights(1, 3, 2, 6, axis=3), q_bias(6), outputs=OTHER),
    ],
    "TRANSPOSE_CONV": [
        Case(a.Conv2DAttributes(2, 2, padding="SAME"), index(1, 10, 7, 4), weights(4, 3, 3, 5), x(1, 5, 4, 5)),
        Case(a.Conv2DAttributes(2, 1), index(2, 11, 6, 4), q_weights(4, 3, 3, 5), q(2, 5, 4, 5), outputs=OTHER),
    ],
    "CONV_3D": [Case(CONV3, x(1, 5, 6, 7, 3), weights(3, 2, 3, 3, 4), weights(4))],
    "CONV_3D_TRANSPOSE": [
        Case(
            a.Conv3DAttributes(2, 2, 2, padding="SAME"), index(1, 6, 8, 4, 3), weights(3, 3, 3, 3, 2), x(1, 3, 4, 2, 2)
        )
    ],
    "FULLY_CONNECTED": [
        Case(a.FullyConnectedAttributes(False, "RELU"), x(2, 3, 8), weights(5, 8), weights(5)),
        Case(a.FullyConnectedAttributes(True), x(2, 3, 8), weights(5, 8)),
        Case(a.FullyConnectedAttributes(False), q(6, 8), q_weights(5, 8), q_bias(5), outputs=OTHER),
        Case(a.FullyConnectedAttributes(True, "RELU"), q(2, 3, 8), q_weights(5, 8), outputs=OTHER),
    ],
    "BATCH_MATMUL": [
        Case(a.BatchMatMulAttributes(adj_y=True), x(2, 3, 4), x(2, 5, 4)),
        Case(a.BatchMatMulAttributes(), q(2, 3, 4), q(2, 4, 5, by=OTHER), outputs=WIDE),
    ],
    "AVERAGE_POOL_2D": [Case(POOL, x(1, 8, 9, 3)), Case(POOL, q(1, 8, 9, 3), outputs=FLAT)],
    "MAX_POOL_2D": [Case(POOL, x(1, 8, 9, 3)), Case(POOL, q(1, 8, 9, 3), outputs=FLAT)],
    "ADD": [
        Case(RELU, x(2, 3, 4), x(3, 1)),
        Case(PLAIN, i(2, 3), i(3)),
        Case(RELU, q(2, 3, 4), q(4, by=OTHER), outputs=WIDE),
    ],
    "SUB": [Case(RELU, x(2, 3, 4), x(3, 1)), Case(PLAIN, q(2, 3, 4), q(2, 3, 4, by=OTHER), outputs=WIDE)],
    "MUL": [Case(RELU, x(2, 3, 4), x(3, 1)), Case(PLAIN, q(2, 3, 4), q(4, by=OTHER), outputs=WIDE)],
    "DIV": [
        Case(PLAIN, x(2, 3), x(3, low=1)),
        Case(PLAIN, i(2, 3), i(3, low=1)),
        Case(PLAIN, q(2, 30), q(30, by=OTHER, low=0), outputs=Quantization(0.004, 5)),
    ],
    "POW": [Case(None, x(2, 3, low=0.1), x(3))],
    **{
        op: [
            Case(None, i(2, 3), i(3, low=1)),
            Case(None, x(2, 3), x(3, low=1)),
            Case(None, q(2, 30), q(30, by=OTHER, low=1), outputs=WIDE),
        ]
        for op in ("FLOOR_DIV", "FLOOR_MOD")
    },
    "LEAKY_RELU": [
        Case(a.AlphaAttributes(0.2), x(2, 9)),
        Case(a.AlphaAttributes(0.2), q(2, 90), outputs=OTHER),
    ],
    "PRELU": [Case(None, x(2, 3, 4), weights(1, 4)), Case(None, q(2, 3, 4), q(1, 4, by=OTHER), outputs=WIDE)],
    "ELU": [Case(a.AlphaAttributes(1.0), x(2, 9))],
    "GELU": [
        Case(a.GeluAttributes(True), x(2, 9)),
        Case(a.GeluAttributes(False), x(2, 9)),
        Case(a.GeluAttributes(False), q(2, 90), outputs=OTHER),
    ],
    "SOFTMAX": [
        Case(a.SoftmaxAttributes(0.7), x(3, 9)),
        Case(a.SoftmaxAttributes(1.0), q(3, 9), outputs=Quantization(1 / 256, -128)),
    ],
    "LOG_SOFTMAX": [
        Case(a.SoftmaxAttributes(), x(3, 9)),
        Case(a.SoftmaxAttributes(), q(3, 9), outputs=Quantization(16 / 256, 127)),
    ],
    "L2_NORMALIZATION": [Case(None, x(3, 9)), Case(None, q(3, 9), outputs=Quantization(1 / 128, 0))],
    "LOCAL_RESPONSE_NORMALIZATION": [
        Case(a.LocalResponseNormalizationAttributes(2, 1.5, 0.3, 0.75), x(2, 3, 4, 9)),
        Case(a.LocalResponseNormalizationAttributes(20, 1.0, 1.0, 0.5), x(1, 2, 3, 5)),
    ],
    "TOPK_V2": [
        Case(None, x(2, 3, 9), index(4), many=2),
        Case(None, i(3, 40, low=-3, high=3), i(low=5, high=7), many=2),
        Case(None, q(3, 40), index(40), outputs=FLAT, many=2),
    ],
    "WHERE": [Case(None, b(3, 4)), Case(None, i(3, 4, low=0, high=2)), Case(None, x(7))],
    "SCATTER_ND": [
        Case(None, index([[1, 2], [0, 0], [1, 2]]), x(3, 4), index(2, 3, 4)),
        Case(None, i(5, 1, low=0, high=4), i(5, 3), index(4, 3)),
        Case(None, index([[3], [1]]), q(2, 3), index(4, 3), outputs=FLAT),
    ],
    "TANH": [Case(None, x(3, 9)), Case(None, q(3, 90), outputs=Quantization(1 / 128, 0))],
    "LOGISTIC": [Case(None, x(3, 9)), Case(None, q(3, 90), outputs=Quantization(1 / 256, -128))],
    "ARG_MAX": [Case(a.ArgAttributes(INT32), x(3, 5), index(1)), Case(a.ArgAttributes(INT64), q(3, 5), index(-2))],
    "ARG_MIN": [Case(a.ArgAttributes(INT32), x(3, 5), index(1)), Case(a.ArgAttributes(INT64), q(3, 5), index(-2))],
    "CUMSUM": [Case(a.CumsumAttributes(True, True), x(3, 5), index(1)), Case(a.CumsumAttributes(), i(3, 5), index(0))],
    "RESHAPE": [Case(None, x(2, 6), index(3, -1)), Case(None, q(2, 6), index(4, 3), outputs=FLAT)],
    "TRANSPOSE": [Case(None, x(2, 3, 4), index(2, 0, 1)), Case(None, q(2, 3, 4), index(1, 0, 2), outputs=FLAT)],
    "CONCATENATION": [
        Case(a.AxisAttributes(-1), x(2, 3), x(2, 4)),
        Case(a.AxisAttributes(1), q(2, 3), q(2, 4), outputs=FLAT),
    ],
    "SPLIT": [Case(a.SplitAttributes(3), index(1), x(2, 6), many=3)],
    "SPLIT_V": [Case(a.SplitAttributes(2), q(2, 6), index(2, -1), index(1), outputs=FLAT, many=2)],
    "PACK": [Case(a.AxisAttributes(1), x(2, 3), x(2, 3)), Case(a.AxisAttributes(-1), q(2, 3), q(2, 3), outputs=FLAT)],
    "UNPACK": [Case(a.UnpackAttributes(3, 1), x(2, 3, 4), many=3)],
    "SLICE": [
        Case(None, x(4, 5), index(1, 2), index(2, -1)),
        Case(None, q(4, 5), index(0, 2), index(3, 2), outputs=FLAT),
    ],
    "STRIDED_SLICE": [
        Case(SLICING, x(4, 5, 3), index(1, 3, 1), index(3, 0, 2), index(1, -1, 1)),
        Case(SLICING, q(4, 5, 3), index(1, 1, 1), index(3, 0, 2), index(2, 2, 1), outputs=FLAT),
    ],
    "PAD": [
        Case(None, x(2, 3), index([[1, 0], [2, 1]])),
        Case(None, q(2, 3), index([[1, 0], [2, 1]]), outputs=FLAT),
    ],
    "PADV2": [Case(None, x(2, 3), index([[1, 0], [2, 1]]), Operand(np.float32([2.5]), None, True))],
    "MIRROR_PAD": [Case(a.MirrorPadAttributes(m), x(3, 4), index([[1, 0], [2, 1]])) for m in ("REFLECT", "SYMMETRIC")],
    "TILE": [Case(None, x(2, 3), index(2, 3)), Case(None, q(2, 3), index(1, 2), outputs=FLAT)],
    "GATHER": [
        Case(a.GatherAttributes(1), x(2, 5, 3), index(4, 0, 1)),
        Case(a.GatherAttributes(0), q(5, 3), i(4, low=0, high=5), outputs=FLAT),
    ],
    "GATHER_ND": [Case(None, x(4, 5, 3), index([[0, 4], [3, 1]]))],
    "EXPAND_DIMS": [Case(None, x(2, 3), index(-1)), Case(None, q(2, 3), index(0), outputs=FLAT)],
    "SQUEEZE": [
        Case(a.SqueezeAttributes((-2, 0)), x(1, 3, 1, 4)),
        Case(a.SqueezeAttributes(), q(1, 3, 1, 4), outputs=FLAT),
    ],
    "SHAPE": [Case(a.DTypeAttributes(INT32), x(2, 3)), Case(a.DTypeAttributes(INT64), q(2, 3))],
    "RANK": [Case(None, x(2, 3))],
    "FILL": [Case(None, index(2, 3), x()), Case(None, i(2, low=1, high=4), i())],
    "RANGE": [
        Case(None, *(Operand(np.int32(v)) for v in (2, 11, 3))),
        Case(None, *(Operand(np.float32(v)) for v in (0, 1, 0.25))),
    ],
    "BROADCAST_TO": [Case(None, x(3, 1), index(2, 3, 4))],
    "REVERSE_V2": [Case(None, x(3, 4), index([1]))],
    "SPACE_TO_DEPTH": [
        Case(a.BlockSizeAttributes(2), x(1, 4, 6, 3)),
        Case(a.BlockSizeAttributes(2), q(1, 4, 6, 3), outputs=FLAT),
    ],
    "DEPTH_TO_SPACE": [
        Case(a.BlockSizeAttributes(2), x(1, 2, 3, 8)),
        Case(a.BlockSizeAttributes(2), q(1, 2, 3, 8), outputs=FLAT),
    ],
    "SPACE_TO_BATCH_ND": [Case(None, x(1, 4, 5, 2), index(2, 3), index([[0, 0], [1, 0]]))],
    "BATCH_TO_SPACE_ND": [Case(None, x(6, 2, 2, 2), index(2, 3), index([[0, 0], [1, 0]]))],
    "RESIZE_BILINEAR": [
        Case(a.ResizeAttributes(half_pixel_centers=True), x(1, 4, 5, 2), index(7, 3)),
        Case(a.ResizeAttributes(align_corners=True), q(1, 4, 5, 2), index(7, 3), outputs=FLAT),
    ],
    "RESIZE_NEAREST_NEIGHBOR": [
        Case(a.ResizeAttributes(half_pixel_centers=True), x(1, 4, 5, 2), index(7, 3)),
        Case(a.ResizeAttributes(), q(1, 4, 5, 2), index(8, 10), outputs=FLAT),
    ],
    "ONE_HOT": [
        Case(
            a.AxisAttributes(-1),
            i(2, 3, low=0, high=4),
            index(4),
            Operand(np.float32(5), None, True),
            Operand(np.float32(-1), None, True),
        )
    ],
    "SELECT_V2": [Case(None, b(2, 1), x(2, 3), x(3))],
    "CAST": [Case(a.DTypeAttributes(INT32), x(2, 3)), Case(a.DTypeAttributes(FLOAT32), i(2, 3))],
    "QUANTIZE": [
        Case(a.DTypeAttributes(INT8), x(2, 90), outputs=FLAT),
        Case(a.DTypeAttributes(INT8), q(2, 90), outputs=OTHER),
    ],
    "DEQUANTIZE": [Case(None, q(2, 90))],
}
for name in "LOGICAL_AND LOGICAL_OR".split():
    CASES[name] = [Case(None, b(2, 3), b(3))]
CASES["LOGICAL_NOT"] = [Case(None, b(2, 3))]
for name in "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split():
    CASES[name] = [Case(None, i(4, 5, low=0, high=3), i(5, low=0, high=3)), Case(None, q(4, 50), q(50, by=OTHER))]
for name in "MAXIMUM MINIMUM".split():
    CASES[name] = [Case(None, x(2, 3), x(3)), Case(None, q(2, 3), q(3), outputs=FLAT)]
CASES["SQUARED_DIFFERENCE"] = [Case(None, x(2, 3), x(3)), Case(None, q(2, 3), q(2, 3, by=OTHER), outputs=WIDE)]
for name in "SQRT RSQRT LOG".split():
    CASES[name] = [Case(None, x(2, 9, low=0.1))]
for name in "NEG SQUARE SIGN SIN COS FLOOR CEIL ROUND EXP ABS".split():
    CASES[name] = [Case(None, x(2, 9))]
for name in "RELU RELU6 RELU_N1_TO_1 HARD_SWISH".split():
    CASES[name] = [Case(None, x(2, 9)), Case(None, q(2, 90), outputs=OTHER)]
CASES["ABS"].append(Case(None, q(2, 90), outputs=FLAT))
CASES["EXP"].append(Case(None, q(2, 90, by=Quantization(0.01, 3)), outputs=OTHER))
for name in "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD".split():
    by = FLAT if name in ("REDUCE_MAX", "REDUCE_MIN") else WIDE
    low = 3 if name == "SUM" else -128  # LiteRT 2.3 takes int8 for uint8 in its SUM
    CASES[name] = [Case(KEEP, x(2, 3, 4), index([0, 2])), Case(DROP, q(2, 3, 4, low=low), index([-1]), outputs=by)]
for name in "REDUCE_ANY REDUCE_ALL".split():
    CASES[name] = [Case(DROP, b(2, 3, 4), index([1]))]

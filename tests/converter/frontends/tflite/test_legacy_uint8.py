"""uint8 models: integers as LiteRT's uint8 kernels have them, with int8 arithmetic inside."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from converter.frontends import tflite
from schema import Quantization, TensorType, evaluate, fixedpoint, ops
from tests.converter.frontends.tflite.cases import CASES, Case
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support import litert
from tests.support.litert import Operand
from tests.support.litert_files import Session
from tests.support.tflite_files import FileBuilder

INT8, UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
REFUSED = frozenset("ABS BATCH_MATMUL EXP FLOOR_DIV FLOOR_MOD REDUCE_PROD SQUARED_DIFFERENCE".split())
"""Ops that LiteRT has no uint8 kernel for."""


def shifted(quantization: Quantization) -> Quantization:
    """One scale for the whole tensor, as uint8 always has."""
    return Quantization(quantization.scale[:1], quantization.zero_point[:1] + 128)


def as_uint8(operand: Operand | None) -> Operand | None:
    if operand is None or operand.value.dtype != INT8:
        return operand
    return Operand((operand.value.astype(int) + 128).astype(UINT8), shifted(operand.quantization), operand.constant)


def quantized_cases() -> list[tuple[str, int]]:
    """(op, number of the case) of those with int8 operands or outputs."""
    rng = np.random.default_rng(0)

    def is_quantized(case: Case) -> bool:
        return any(o is not None and o.value.dtype == INT8 for o in case.draw(rng))

    return [(op, n) for op, cases in sorted(CASES.items()) for n, case in enumerate(cases) if is_quantized(case)]


@pytest.mark.parametrize(("op", "number"), quantized_cases())
def test_operator(op, number):
    case = CASES[op][number]
    operands = case.draw(np.random.default_rng(zlib.crc32(f"{op}{number}".encode())))
    kinds = ops.get(op).infer(case.attributes, [o and o.type for o in operands], [o and o.value for o in operands])
    operands = [as_uint8(o) for o in operands]
    outputs = [
        TensorType(None, UINT8, shifted(case.outputs)) if k.dtype == INT8 else TensorType(None, k.dtype) for k in kinds
    ]
    content = litert.write(op, case.attributes, operands, outputs)
    arrays = [o.value for o in operands if o is not None and not o.constant]
    if op in REFUSED:
        with pytest.raises(RuntimeError, match="failed to"):
            Session(content).run(arrays)
        return
    assert_same(content, arrays)


def network(b: FileBuilder, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Convolution, depthwise, a branch that is joined with another scale, means, a dense layer and softmax."""

    def activation(*shape, scale=0.05, zero=120):
        return b.tensor(np.uint8, shape, None, Quantization(scale, zero))

    def linear(op, x, y, shape, channels, options):
        weights = b.constant(rng.integers(0, 256, shape), np.uint8, Quantization(0.004, 117))
        bias = b.constant(rng.integers(-500, 500, channels), np.int32, Quantization(0.0002))
        b.operator(op, [x, weights, bias], [y], options)

    def window(table):
        table.strideH = table.strideW = 1
        if hasattr(table, "dilationHFactor"):
            table.dilationHFactor = table.dilationWFactor = 1
        if hasattr(table, "depthMultiplier"):
            table.depthMultiplier = 1
        return table

    pixels = activation(1, 8, 8, 3, scale=1 / 127.5, zero=128)
    y = activation(1, 8, 8, 8)
    linear("CONV_2D", pixels, y, (8, 3, 3, 3), 8, window(tfl.Conv2DOptionsT()))
    z = activation(1, 8, 8, 8, scale=0.1, zero=90)
    linear("DEPTHWISE_CONV_2D", y, z, (1, 3, 3, 8), 8, window(tfl.DepthwiseConv2DOptionsT()))
    joined = activation(1, 8, 8, 16, scale=0.09, zero=100)
    table = tfl.ConcatenationOptionsT()
    table.axis = 3
    b.operator("CONCATENATION", [y, z], [joined], table)
    means = activation(1, 4, 4, 16, scale=0.09, zero=100)
    table = window(tfl.Pool2DOptionsT())
    table.strideH = table.strideW = table.filterHeight = table.filterWidth = 2
    b.operator("AVERAGE_POOL_2D", [joined], [means], table)
    flat = activation(1, 256, scale=0.09, zero=100)
    b.operator("RESHAPE", [means, b.constant([1, 256], np.int32)], [flat])
    scores = activation(1, 10, scale=0.2, zero=128)
    linear("FULLY_CONNECTED", flat, scores, (10, 256), 10, tfl.FullyConnectedOptionsT())
    probabilities = activation(1, 10, scale=1 / 256, zero=0)
    table = tfl.SoftmaxOptionsT()
    table.beta = 1.0
    b.operator("SOFTMAX", [scores], [probabilities], table)
    return [pixels], [probabilities, joined]


def test_network(rng):
    b = FileBuilder()
    content = b.finish(*network(b, rng))
    graph = assert_same(content, [rng.integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)])
    kinds = {node.op: node.inputs[0].dtype for node in graph.nodes if node.op != "QUANTIZE"}
    assert {op for op, dtype in kinds.items() if dtype == UINT8} == {"CONCATENATION", "AVERAGE_POOL_2D"}
    assert kinds["CONV_2D"] == kinds["FULLY_CONNECTED"] == INT8
    assert graph.outputs[1].quantization == Quantization(0.09, 100)


def test_the_product_of_the_scales_is_rounded_as_by_uint8_kernels(rng):
    """Biases for which the two roundings of the multiplier give different outputs."""
    seen = 0
    for turn in range(8):
        x_scale, w_scale = (np.float32(rng.uniform(low, 10 * low)) for low in (0.01, 1e-4))
        y_scale = np.float32(x_scale * w_scale * rng.uniform(300, 9000))
        exact = float(np.float64(x_scale) * np.float64(w_scale) / np.float64(y_scale))
        rounded = float(np.float64(x_scale * w_scale) / np.float64(y_scale))
        acc = np.arange(int(127 / exact))
        differ = acc[fixedpoint.multiply_by_real(acc, exact) != fixedpoint.multiply_by_real(acc, rounded)][:64]
        if not differ.size:
            continue
        seen += differ.size
        b = FileBuilder()
        x = b.tensor(np.uint8, (1, 1, 1, 4), None, Quantization(x_scale, 77))
        wide = np.full((differ.size, 1, 1, 4), 130)
        wide[0] = 0, 255, 3, 77  # less the zero point that is nine bits: the zero point stays
        weights = b.constant(wide if turn % 2 else wide.clip(0, 200), np.uint8, Quantization(w_scale, 100))
        bias = b.constant(differ, np.int32)
        y = b.tensor(np.uint8, (1, 1, 1, differ.size), None, Quantization(y_scale, 128))
        table = tfl.Conv2DOptionsT()
        table.strideH = table.strideW = table.dilationHFactor = table.dilationWFactor = 1
        b.operator("CONV_2D", [x, weights, bias], [y], table)
        assert_same(b.finish([x], [y]), [np.full((1, 1, 1, 4), 77, np.uint8)])
    assert seen


def test_plain_numbers_stay_uint8(rng):
    """An image without a scale that is cast to float."""
    b = FileBuilder()
    x, y = b.tensor(np.uint8, (1, 4, 4, 3)), b.tensor(np.float32, (1, 4, 4, 3))
    b.operator("CAST", [x], [y])
    graph = assert_same(b.finish([x], [y]), [rng.integers(0, 256, (1, 4, 4, 3)).astype(np.uint8)])
    assert [node.op for node in graph.nodes] == ["CAST"]


def test_borders(rng):
    """QUANTIZE and DEQUANTIZE make and read int8 at once: nothing stands between."""
    b = FileBuilder()
    x, out = b.tensor(np.float32, (2, 9)), b.tensor(np.float32, (2, 9))
    y, z = (b.tensor(np.uint8, (2, 9), None, Quantization(0.02, zero)) for zero in (128, 5))
    b.operator("QUANTIZE", [x], [y])
    b.operator("RELU", [y], [z])
    b.operator("DEQUANTIZE", [z], [out])
    graph = assert_same(b.finish([x], [out]), [rng.normal(size=(2, 9)).astype(np.float32)])
    assert [node.op for node in graph.nodes] == ["QUANTIZE", "RELU", "DEQUANTIZE"]
    (result,) = evaluate.run(tflite.read(b.pack()), [np.zeros((2, 9), np.float32)])
    assert not result.any()

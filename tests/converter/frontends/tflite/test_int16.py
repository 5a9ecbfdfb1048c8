"""int16 activations with int8 weights (16x8): integers as LiteRT's reference kernels have them."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from converter.frontends import tflite
from schema import Quantization, TensorType, UnsupportedError, ops
from schema.ops import attributes as a
from tests.converter.frontends.tflite.cases import CASES, Case
from tests.converter.frontends.tflite.comparing import assert_same
from tests.support import litert
from tests.support.litert import Operand
from tests.support.tflite_files import FileBuilder

INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)
LINEAR = {"CONV_2D": (1, 2), "DEPTHWISE_CONV_2D": (1, 2), "FULLY_CONNECTED": (1, 2), "TRANSPOSE_CONV": (1, 3)}
"""Where weights and bias are."""
COMPARISONS = frozenset("GREATER GREATER_EQUAL LESS LESS_EQUAL".split())
NOT_HERE = frozenset("HARD_SWISH LOG_SOFTMAX L2_NORMALIZATION RELU_N1_TO_1 SQUARED_DIFFERENCE SUM".split())
"""Ops that the schema, as TFLite's specification, has no int16 meaning for."""
NOT_THERE = frozenset("ARG_MAX ARG_MIN DEPTH_TO_SPACE SCATTER_ND SPACE_TO_DEPTH".split())
"""Ops that LiteRT has no int16 kernel for."""


def wide(quantization: Quantization) -> Quantization:
    return Quantization(quantization.scale[:1] / 256)


def quantized_cases() -> list[tuple[str, int]]:
    """(op, number of the case) of those with int8 operands."""
    rng = np.random.default_rng(0)

    def is_quantized(case: Case) -> bool:
        return any(o is not None and o.value.dtype == INT8 for o in case.draw(rng))

    return [(op, n) for op, cases in sorted(CASES.items()) for n, case in enumerate(cases) if is_quantized(case)]


def as_int16(op: str, operands: list[Operand | None], rng: np.random.Generator) -> list[Operand | None]:
    """The operands with int16 in place of int8, which weights stay, and an int64 bias."""
    weights, bias = LINEAR.get(op, (None, None))
    result: list[Operand | None] = []
    for index, operand in enumerate(operands):
        if operand is not None and operand.value.dtype == INT8 and index != weights and (op, index) != ("PRELU", 1):
            values = rng.integers(-32768, 32768, operand.value.shape).astype(INT16)
            # Numbers of different scales are not compared in int16.
            by = operands[0].quantization if op in COMPARISONS else operand.quantization
            operand = Operand(values, wide(by), operand.constant)
        elif operand is not None and index == bias:
            operand = Operand(operand.value.astype(np.int64) << 8, operand.quantization, True)
        result.append(operand)
    return result


@pytest.mark.parametrize(("op", "number"), quantized_cases())
def test_operator(op, number):
    case = CASES[op][number]
    rng = np.random.default_rng(zlib.crc32(f"{op}{number}".encode()))
    operands = case.draw(rng)
    kinds = ops.get(op).infer(case.attributes, [o and o.type for o in operands], [o and o.value for o in operands])
    operands = as_int16(op, operands, rng)
    scale = Quantization(1 / 32768) if op in ("LOGISTIC", "TANH", "SOFTMAX") else case.outputs and wide(case.outputs)
    if op == "QUANTIZE" and case.attributes.dtype == INT8:
        pytest.skip("the output stays int8")
    outputs = [TensorType(None, INT16, scale) if k.dtype == INT8 else TensorType(None, k.dtype) for k in kinds]
    content = litert.write(op, case.attributes, operands, outputs)
    if op in NOT_HERE:
        with pytest.raises(UnsupportedError, match=f"{op}.*has no meaning for input int16"):
            tflite.read(content)
        return
    if op in NOT_THERE:
        pytest.skip("LiteRT has no kernel")
    assert_same(content, [o.value for o in operands if o is not None and not o.constant])


@pytest.mark.parametrize("bias", [None, "int32", "int64"])
@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "CONV_2D"])
def test_outputs_of_the_whole_range(rng, op, bias):
    """Where sixteen bits of the multiplier and thirty-one give different integers."""
    if (op, bias) == ("CONV_2D", None):
        pytest.skip("LiteRT's convolutions have a bias")
    shape = (6, 9) if op == "FULLY_CONNECTED" else (6, 1, 1, 9)
    attributes = a.FullyConnectedAttributes() if op == "FULLY_CONNECTED" else a.Conv2DAttributes()
    weights = Operand(rng.integers(-127, 128, shape).astype(INT8), Quantization(rng.uniform(0.001, 0.02, 6)), True)
    x = rng.integers(-32768, 32768, (200, 9) if op == "FULLY_CONNECTED" else (2, 10, 10, 9)).astype(INT16)
    operands = [Operand(x, Quantization(5e-4)), weights]
    if bias is not None:
        operands.append(Operand(rng.integers(-100000, 100000, 6).astype(bias), None, True))
    content = litert.write(op, attributes, operands, [TensorType(None, INT16, Quantization(0.003))])
    assert_same(content, [x])


def test_sums_of_old_files(rng):
    """Scales that are powers of two have a kernel of their own, unless the file says otherwise."""
    b = FileBuilder()
    x, y, z = (b.tensor(INT16, (2, 30), None, Quantization(s)) for s in (2**-8, 2**-9, 2**-7.0009))
    options = tfl.AddOptionsT()
    b.operator("ADD", [x, y], [z], options)
    with pytest.raises(UnsupportedError, match="powers of two"):
        tflite.read(b.finish([x, y], [z]))
    options.potScaleInt16 = False
    assert_same(b.pack(), [rng.integers(-32768, 32768, (2, 30)).astype(INT16) for _ in range(2)])

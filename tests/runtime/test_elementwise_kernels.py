"""Binary kernels, int8 tables and quantization, equal to the references over every way to broadcast."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Node, Quantization, Tensor, ops
from schema.ops.attributes import ArithmeticAttributes, DTypeAttributes
from tests.support.engine import compare

OPS = ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"]
QUANTIZED = ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"]


def attributes(op: str, **fields):
    return ArithmeticAttributes(**fields) if ops.get(op).Attributes is ArithmeticAttributes else None


@st.composite
def broadcast_shapes(draw):
    full = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    shapes = []
    for _ in range(2):
        shape = [d if draw(st.booleans()) else 1 for d in full]
        shapes.append(tuple(shape[draw(st.integers(0, len(shape) - 1)) :]))
    return shapes


@pytest.mark.parametrize("op", OPS)
@given(
    shapes=broadcast_shapes(), seed=st.integers(0, 99), activation=st.sampled_from(["NONE", "RELU", "RELU6", "CLAMP"])
)
def test_float(op, shapes, seed, activation):
    draw = np.random.default_rng(seed)
    arrays = [(4 * draw.standard_normal(s)).astype(np.float32) for s in shapes]
    tensors = [Tensor("x", np.float32, s) for s in shapes]
    y = Tensor("y", np.float32)
    fused = attributes(
        op, activation=activation, **({"clamp_min": -1.0, "clamp_max": 0.5} if activation == "CLAMP" else {})
    )
    compare([Node(op, tensors, [y], fused)], tensors, [y], arrays)


@pytest.mark.parametrize("op", QUANTIZED)
@given(shapes=broadcast_shapes(), seed=st.integers(0, 99), zero=st.sampled_from([-128, -3, 0, 127]))
def test_int8(op, shapes, seed, zero):
    draw = np.random.default_rng(seed)
    arrays = [draw.integers(-128, 128, s, dtype=np.int8) for s in shapes]
    same = op in ("MAXIMUM", "MINIMUM")  # these need equal scales
    scales = [Quantization(0.05, zero), Quantization(0.05, zero) if same else Quantization(0.02, 5)]
    tensors = [Tensor("x", np.int8, s, q) for s, q in zip(shapes, scales, strict=True)]
    y = Tensor("y", np.int8, quantization=scales[0] if same else Quantization(0.07, -9))
    compare([Node(op, tensors, [y], attributes(op))], tensors, [y], arrays)


def test_nan_and_infinity_are_what_numpy_makes_of_them():
    a = np.array([np.nan, 1, np.inf, -np.inf, 0, np.nan], np.float32)
    b = np.array([1, np.nan, -np.inf, np.inf, 0, np.nan], np.float32)
    for op in OPS:
        tensors = [Tensor("x", np.float32, (6,)) for _ in range(2)]
        y = Tensor("y", np.float32)
        compare([Node(op, tensors, [y], attributes(op))], tensors, [y], [a, b])


def test_long_runs_are_shared_by_workers(rng):
    arrays = [rng.standard_normal((3, 50_001)).astype(np.float32) for _ in range(2)]
    tensors = [Tensor("x", np.float32, (None, 50_001)) for _ in range(2)]
    y = Tensor("y", np.float32)
    compare([Node("ADD", tensors, [y], attributes("ADD"))], tensors, [y], arrays, threads=2)


def test_constant_operands(rng):
    x, y = Tensor("x", np.float32, (None, 7)), Tensor("y", np.float32)
    scale = Tensor.from_array("scale", rng.standard_normal(7).astype(np.float32))
    compare(
        [Node("MUL", [scale, x], [y], attributes("MUL"))], [x], [y], [rng.standard_normal((4, 7)).astype(np.float32)]
    )


@given(scale=st.floats(1e-4, 10), zero=st.integers(-128, 127), seed=st.integers(0, 99))
def test_quantize_requantize_dequantize(scale, zero, seed):
    values = (50 * np.random.default_rng(seed).standard_normal(97)).astype(np.float32)
    values[:6] = [0, -0.0, 1e30, -1e30, np.inf, -np.inf]
    values[6:40] = (np.arange(34) - 17 + 0.5) * np.float32(scale)  # ties
    x, z = Tensor("x", np.float32, (None,)), Tensor("z", np.float32)
    first = Tensor("q", np.int8, quantization=Quantization(scale, zero))
    second = Tensor("r", np.int8, quantization=Quantization(1.7 * scale, -zero - 1))
    to_int8 = DTypeAttributes(dtype=np.dtype(np.int8))
    nodes = [
        Node("QUANTIZE", [x], [first], to_int8),
        Node("QUANTIZE", [first], [second], to_int8),
        Node("DEQUANTIZE", [second], [z]),
    ]
    compare(nodes, [x], [first, second, z], [values])

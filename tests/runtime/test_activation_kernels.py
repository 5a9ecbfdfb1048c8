"""Functions of one number, close to the references (float32) or equal to them (int8)."""

import numpy as np
import pytest

from schema import Node, Quantization, Tensor, TensorType, ops
from schema.ops.attributes import AlphaAttributes, ClampAttributes, GeluAttributes
from tests.support.engine import compare

EXACT = ["RELU", "RELU6", "RELU_N1_TO_1", "CLAMP", "LEAKY_RELU", "ABS", "NEG", "SQUARE", "SQRT", "RECIPROCAL"]
CLOSE = """ELU SELU GELU SWISH HARD_SWISH LOGISTIC TANH SOFTPLUS SOFTSIGN EXP LOG ERF RSQRT""".split()
FIELDS = {AlphaAttributes: {"alpha": 0.3}, ClampAttributes: {"min": -0.5, "max": 2.5}, GeluAttributes: {}}


def attributes(op, **fields):
    table = ops.get(op).Attributes
    return None if table is None else table(**(FIELDS[table] | fields))


def run(op, array, rtol=0.0, **fields):
    x, y = Tensor("x", np.float32, (None, *array.shape[1:])), Tensor("y", np.float32)
    return compare([Node(op, [x], [y], attributes(op, **fields))], [x], [y], [array], rtol=rtol)[0]


@pytest.fixture
def values(rng) -> np.ndarray:
    dense = np.linspace(-12, 12, 4001)
    return np.concatenate([dense, rng.standard_normal(20_000), 10.0 ** np.arange(-9, 9), [0.0, -0.0]]).astype(
        np.float32
    )


@pytest.mark.parametrize("op", EXACT)
def test_exact(op, values):
    run(op, values)


@pytest.mark.parametrize("op", CLOSE)
def test_close(op, values):
    usable = {"LOG": np.abs(values) + np.float32(1e-6), "RSQRT": np.abs(values) + np.float32(1e-3)}.get(op, values)
    if op == "EXP":
        usable = usable[usable < 80]
    result = run(op, usable, rtol=1e-6)
    assert np.isfinite(result).all()


def test_gelu_by_tanh(values):
    run("GELU", values[np.abs(values) < 1e4], rtol=1e-6, approximate=True)


@pytest.mark.parametrize("op", ["EXP", "LOGISTIC", "TANH", "SOFTPLUS", "SWISH", "ELU"])
def test_far_values_and_nan(op):
    x = np.array([-1e30, -200, -88, 88, 200, 1e30, np.nan], np.float32)
    with np.errstate(all="ignore"):
        result = run(op, x, rtol=1e-6)
    assert np.isnan(result[-1])


@pytest.mark.parametrize("op", ["ELU", "SELU", "ERF", "GELU", "SWISH", "HARD_SWISH", "SOFTSIGN", "LEAKY_RELU", "TANH"])
def test_small_results_keep_their_digits(op):
    """Each is exact relative to itself: e**x - 1 has few digits left where e**x is near 1."""
    near = 10.0 ** np.linspace(-8, -0.3, 500)
    x = np.concatenate([near, -near, [-0.4999, -0.5, -0.5001, 0.4999, 0.5, 0.5001]]).astype(np.float32)
    wide = TensorType(x.shape, np.float64)
    (exact,) = ops.get(op).reference(attributes(op), [x.astype(np.float64)], [wide], [wide])
    np.testing.assert_allclose(run(op, x, rtol=1e-6), exact, rtol=1e-6)


def test_exp_relative_error_over_its_whole_range():
    x = np.linspace(-87, 88, 200_001).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    assert np.max(np.abs(run("EXP", x, rtol=1e-6) / expected - 1)) < 3e-7


def test_log_relative_error():
    x = np.exp(np.linspace(-87, 88, 200_001)).astype(np.float32)
    expected = np.log(x.astype(np.float64))
    result = run("LOG", x, rtol=1e-6)
    assert np.max(np.abs(result - expected) / np.maximum(np.abs(expected), 1e-2)) < 1e-6


def test_prelu(rng):
    x, y = Tensor("x", np.float32, (None, 4, 4, 3)), Tensor("y", np.float32)
    for shape in ((3,), (1, 1, 3), (4, 4, 3)):
        alpha = Tensor.from_array("alpha", rng.standard_normal(shape).astype(np.float32))
        compare([Node("PRELU", [x, alpha], [y])], [x], [y], [rng.standard_normal((2, 4, 4, 3)).astype(np.float32)])


@pytest.mark.parametrize("op", [op for op in EXACT + CLOSE if op not in ("SQRT", "RECIPROCAL", "LOG", "RSQRT")])
def test_int8(op):
    every = np.arange(-128, 128).astype(np.int8)
    x = Tensor("x", np.int8, (None,), Quantization(0.04, 11))
    fixed = {"LOGISTIC": Quantization(1 / 256, -128), "TANH": Quantization(1 / 128, 0)}
    y = Tensor("y", np.int8, quantization=fixed.get(op, Quantization(0.05, -20)))
    compare([Node(op, [x], [y], attributes(op))], [x], [y], [every])

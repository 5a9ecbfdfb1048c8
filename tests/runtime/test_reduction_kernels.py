"""Sums, means, extrema and softmax on the engine, against the references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Node, Quantization, Tensor
from schema.ops.attributes import ReduceAttributes, SoftmaxAttributes
from tests.support.engine import compare

FLOAT_OPS = ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"]


@st.composite
def reductions(draw):
    """(shape, axes that neighbour each other, attributes)."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 7, 17, 33]), min_size=1, max_size=4))
    first = draw(st.integers(0, len(shape) - 1))
    axes = list(range(first, draw(st.integers(first, len(shape) - 1)) + 1))
    if draw(st.booleans()):
        axes = [a - len(shape) for a in axes]
    return tuple(shape), axes, ReduceAttributes(draw(st.booleans()))


@pytest.mark.parametrize("op", FLOAT_OPS)
@given(case=reductions(), seed=st.integers(0, 99), threads=st.sampled_from([1, 2]))
def test_float(op, case, seed, threads):
    shape, axes, attributes = case
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    input_, y = Tensor("x", np.float32, shape), Tensor("y", np.float32)
    node = Node(op, [input_, Tensor.from_array("axes", np.array(axes, np.int32))], [y], attributes)
    compare([node], [input_], [y], [x], rtol=1e-6, threads=threads)


@pytest.mark.parametrize("op", FLOAT_OPS)
@given(
    case=reductions(),
    seed=st.integers(0, 99),
    zeros=st.sampled_from([(0, 0), (-128, 127), (5, -3)]),
    scale=st.sampled_from([1e-3, 0.05, 2.0]),
)
def test_int8(op, case, seed, zeros, scale):
    shape, axes, attributes = case
    x = np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)
    given_, wanted = Quantization(0.05, zeros[0]), Quantization(scale, zeros[1])
    if op.startswith("REDUCE"):
        wanted = given_
    input_, y = Tensor("x", np.int8, shape, given_), Tensor("y", np.int8, None, wanted)
    node = Node(op, [input_, Tensor.from_array("axes", np.array(axes, np.int32))], [y], attributes)
    compare([node], [input_], [y], [x])


def test_axes_apart_run_by_the_reference(rng):
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    input_, y = Tensor("x", np.float32, x.shape), Tensor("y", np.float32)
    node = Node("SUM", [input_, Tensor.from_array("axes", np.array([0, 2], np.int32))], [y], ReduceAttributes(False))
    compare([node], [input_], [y], [x], native=False)


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_not_a_number_wins(op, rng):
    x = rng.standard_normal((5, 7)).astype(np.float32)
    x[0, 0] = x[4, 1] = x[2, 2] = np.nan
    input_, y = Tensor("x", np.float32, x.shape), Tensor("y", np.float32)
    node = Node(op, [input_, Tensor.from_array("axes", np.array([0], np.int32))], [y], ReduceAttributes(False))
    compare([node], [input_], [y], [x])


@given(
    shape=st.sampled_from([(1,), (10,), (3, 1), (2, 17), (3, 4, 33), (1, 1000)]),
    seed=st.integers(0, 99),
    beta=st.sampled_from([1.0, 0.5, 2.0]),
    spread=st.sampled_from([1.0, 30.0, 500.0]),
)
def test_softmax_float(shape, seed, beta, spread):
    x = (spread * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
    input_, y = Tensor("x", np.float32, shape), Tensor("y", np.float32)
    compare([Node("SOFTMAX", [input_], [y], SoftmaxAttributes(beta))], [input_], [y], [x], rtol=1e-6)


@given(
    shape=st.sampled_from([(1,), (10,), (3, 1), (2, 17), (3, 4, 33), (1, 1000), (2, 5000)]),
    seed=st.integers(0, 99),
    beta=st.sampled_from([1.0, 0.3]),
    scale=st.sampled_from([1e-3, 0.02, 0.2, 5.0]),
    most=st.sampled_from([1, 20, 128]),
)
def test_softmax_int8(shape, seed, beta, scale, most):
    x = np.random.default_rng(seed).integers(-most, most, shape, dtype=np.int8)
    input_ = Tensor("x", np.int8, shape, Quantization(scale, 4))
    y = Tensor("y", np.int8, None, Quantization(1 / 256, -128))
    compare([Node("SOFTMAX", [input_], [y], SoftmaxAttributes(beta))], [input_], [y], [x])


def test_softmax_of_not_a_number_and_infinity():
    x = np.array([[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3], np.float32)
    input_, y = Tensor("x", np.float32, x.shape), Tensor("y", np.float32)
    compare([Node("SOFTMAX", [input_], [y], SoftmaxAttributes(1.0))], [input_], [y], [x], rtol=1e-6)

"""Pooling on the engine, against the references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Node, Quantization, Tensor
from schema.ops.attributes import Pool2DAttributes, Pool3DAttributes
from tests.support.engine import compare
from tests.support.operands import ACTIVATIONS


@st.composite
def cases(draw):
    """(input shape, attributes) of two-dimensional pooling."""
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    fields = {
        "filter_h": kernel[0],
        "filter_w": kernel[1],
        "stride_h": draw(st.integers(1, 3)),
        "stride_w": draw(st.integers(1, 3)),
        "padding": draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"])),
        **draw(ACTIVATIONS),
    }
    if fields["padding"] == "EXPLICIT":
        fields["pads"] = tuple(draw(st.integers(0, k - 1)) for k in kernel for _ in range(2))
    size = [k + draw(st.integers(0, 6)) for k in kernel]
    channels = draw(st.sampled_from([1, 3, 16, 17, 40]))
    return (draw(st.integers(1, 2)), *size, channels), Pool2DAttributes(**fields)


@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@given(case=cases(), seed=st.integers(0, 99), threads=st.sampled_from([1, 2]))
def test_float(op, case, seed, threads):
    shape, attributes = case
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    input_, y = Tensor("x", np.float32, shape), Tensor("y", np.float32)
    compare([Node(op, [input_], [y], attributes)], [input_], [y], [x], rtol=1e-6, threads=threads)


@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@given(case=cases(), seed=st.integers(0, 99), zero=st.sampled_from([-128, 0, 5, 127]))
def test_int8(op, case, seed, zero):
    shape, attributes = case
    x = np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)
    quantization = Quantization(0.05, zero)
    input_, y = Tensor("x", np.int8, shape, quantization), Tensor("y", np.int8, None, quantization)
    compare([Node(op, [input_], [y], attributes)], [input_], [y], [x])


@pytest.mark.parametrize("op", ["MAX_POOL_3D", "AVERAGE_POOL_3D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_three_axes(op, padding, rng):
    x = rng.standard_normal((2, 5, 6, 7, 3)).astype(np.float32)
    input_, y = Tensor("x", np.float32, x.shape), Tensor("y", np.float32)
    attributes = Pool3DAttributes(2, 3, 2, 2, 1, 3, padding)
    compare([Node(op, [input_], [y], attributes)], [input_], [y], [x], rtol=1e-6, threads=2)


@pytest.mark.parametrize("op", ["MAX_POOL_3D", "AVERAGE_POOL_3D"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@given(
    shape=st.tuples(*[st.integers(3, 7)] * 3, st.sampled_from([1, 3, 16, 33])),
    window=st.tuples(*[st.integers(1, 3)] * 3),
    strides=st.tuples(*[st.integers(1, 3)] * 3),
    padding=st.sampled_from(["SAME", "VALID"]),
    seed=st.integers(0, 99),
)
def test_three_axes_of_integers(op, dtype, shape, window, strides, padding, seed):
    info = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(info.min, info.max + 1, (2, *shape), dtype)
    quantization = Quantization(0.05, 7 if dtype == np.int8 else 0)
    input_, y = Tensor("x", dtype, x.shape, quantization), Tensor("y", dtype, None, quantization)
    attributes = Pool3DAttributes(*window, *strides, padding)
    compare([Node(op, [input_], [y], attributes)], [input_], [y], [x])


def test_not_a_number_wins(rng):
    x = rng.standard_normal((1, 6, 6, 17)).astype(np.float32)
    x[0, 2, 3, :] = np.nan
    x[0, 0, 0, :] = -np.inf
    input_, y = Tensor("x", np.float32, x.shape), Tensor("y", np.float32)
    attributes = Pool2DAttributes(2, 2, 1, 1)
    (result,) = compare([Node("MAX_POOL_2D", [input_], [y], attributes)], [input_], [y], [x])
    assert np.isnan(result).sum() == 4 * 17


def test_global_average_over_a_large_image(rng):
    x = rng.integers(100, 128, (1, 112, 112, 5), dtype=np.int8)
    quantization = Quantization(0.05, 3)
    input_, y = Tensor("x", np.int8, x.shape, quantization), Tensor("y", np.int8, None, quantization)
    attributes = Pool2DAttributes(112, 112, 112, 112)
    compare([Node("AVERAGE_POOL_2D", [input_], [y], attributes)], [input_], [y], [x])

"""TOPK_V2, WHERE, SCATTER_ND: which elements are large, or there, and where they go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ExecutionError, Quantization, ShapeError, TensorType, UnsupportedError, ops
from tests.support.drawing import every, generators, index_operand, numbers, quantizations, quantized, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_all_parity, assert_parity, run_reference


@given(st.data())
def test_topk_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape = draw(shapes(1, 3, 1, 12))
    # Few distinct numbers: many are equal.
    for dtype in every("float32", "int32", "int64", "int8", "uint8", "int16"):
        x = rng.integers(0, draw(st.sampled_from([2, 100])), shape).astype(dtype)
        quantization = draw(quantizations(dtype)) if quantized(dtype) else None
        k = index_operand(draw, draw(st.integers(1, shape[-1])))
        assert_all_parity("TOPK_V2", None, [Operand(x, quantization), k], [quantization, None])


def test_topk_extremes():
    x = np.array([[-(2**31), 2**31 - 1, 0, 2**31 - 1]], np.int32)
    values, indices = run_reference("TOPK_V2", None, [Operand(x), Operand(np.int32(4))], [None, None])
    assert indices.tolist() == [[1, 3, 2, 0]]
    assert values.tolist() == [[2**31 - 1, 2**31 - 1, 0, -(2**31)]]


@pytest.mark.parametrize("k", [-1, 4])
def test_topk_of_more_than_there_are(k):
    x = TensorType((2, 3), np.float32)
    with pytest.raises(ShapeError, match=f"k is {k}"):
        ops.get("TOPK_V2").infer(None, [x, TensorType((), np.int32)], [None, np.int32(k)])
    with pytest.raises(ShapeError, match="scalar"):
        ops.get("TOPK_V2").infer(None, [TensorType((), np.float32), TensorType((), np.int32)], [None, None])


@given(st.data())
def test_where_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape = draw(shapes(1, 4))
    for dtype in every("bool", "float32", "int32", "int64", "int8", "uint8", "uint32"):
        x = numbers(rng, dtype, shape) * (rng.random(shape) < draw(st.floats(0, 1)))
        x.flat[0] = 1  # LiteRT's interface has no empty outputs
        assert_parity("WHERE", None, [Operand(x.astype(dtype))])


def test_where_without_any():
    assert run_reference("WHERE", None, [Operand(np.zeros((2, 3), bool))])[0].shape == (0, 2)


@given(st.data())
def test_scatter_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape = draw(shapes(1, 3))
    depth = draw(st.integers(1, len(shape)))
    count = draw(shapes(1, 2))
    indices = np.stack([rng.integers(0, shape[axis], count) for axis in range(depth)], axis=-1)
    for dtype in every("float32", "int32", "int64", "int8", "uint8"):
        updates = numbers(rng, dtype, (*count, *shape[depth:]))
        quantization = draw(quantizations(dtype)) if quantized(dtype) else None
        inputs = [index_operand(draw, indices), Operand(updates, quantization), index_operand(draw, shape)]
        assert_parity("SCATTER_ND", None, inputs, quantization)


def test_scatter_at_no_axis(rng):
    """Indices without elements name the whole output: updates add up."""
    updates = rng.normal(size=(4, 2, 3)).astype(np.float32)
    inputs = [Operand(np.zeros((4, 0), np.int32)), Operand(updates), Operand(np.array([2, 3], np.int32))]
    np.testing.assert_allclose(run_reference("SCATTER_ND", None, inputs)[0], updates.sum(0), rtol=1e-6)


def test_scatter_refusals():
    op = ops.get("SCATTER_ND")
    index, updates, shape = (TensorType(s, d) for s, d in (((4, 1), "i4"), ((4, 3), "f4"), ((2,), "i4")))
    with pytest.raises(ShapeError, match=r"updates .* do not fit indices"):
        op.infer(None, [index, updates, shape], [None, None, np.array([5, 2])])
    with pytest.raises(ShapeError, match="name 3 axes"):
        op.infer(None, [TensorType((4, 3), "i4"), updates, shape], [None, None, np.array([5, 3])])
    with pytest.raises(ShapeError, match=r"the shape is \[5, -3\]"):
        op.infer(None, [index, updates, shape], [None, None, np.array([5, -3])])
    with pytest.raises(UnsupportedError, match="has no meaning for updates"):
        op.infer(None, [index, TensorType((4, 3), bool), shape], [None, None, None])
    inputs = [
        Operand(np.array([[5]], np.int32)),
        Operand(np.ones((1, 3), np.float32)),
        Operand(np.array([5, 3], np.int32)),
    ]
    with pytest.raises(ExecutionError, match="outside of an axis of 5"):
        run_reference("SCATTER_ND", None, inputs)


def test_quantized_updates_add_as_integers():
    """As TFLite: what no update reaches is the integer 0, whatever the zero point."""
    inputs = [
        Operand(np.array([[1], [1]], np.int32)),
        Operand(np.array([100, 100], np.int8), Quantization(0.1, 5)),
        Operand(np.array([3], np.int32)),
    ]
    assert run_reference("SCATTER_ND", None, inputs, [Quantization(0.1, 5)])[0].tolist() == [0, -56, 0]

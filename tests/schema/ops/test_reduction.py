"""Reductions over axes, ARG_MAX, ARG_MIN, CUMSUM."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ExecutionError, Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import ArgAttributes, CumsumAttributes, ReduceAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import dtypes, generators, index_operand, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

NUMERIC = ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"]
BOOLEAN = ["REDUCE_ANY", "REDUCE_ALL"]
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


@st.composite
def reductions(draw):
    """(shape, axes operand, attributes); axes may be negative and named twice."""
    shape = draw(shapes(1, 4))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=len(shape)))
    return shape, index_operand(draw, axes), ReduceAttributes(draw(st.booleans()))


@pytest.mark.parametrize("op", NUMERIC + BOOLEAN)
@given(data=st.data())
def test_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    shape, axes, attributes = draw(reductions())
    dtype = draw(dtypes("bool") if op in BOOLEAN else dtypes("float32", "int32", "int64"))
    x = rng.normal(0, 3, shape).astype(dtype) if dtype.kind != "b" else rng.random(shape) < 0.7
    assert_parity(op, attributes, [Operand(x), axes], tolerance=4e-6)


@given(st.data())
def test_mean_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape, axes, attributes = draw(reductions())
    q = draw(draws.quantizations())
    output = draws.output(draw, float(q.scale[0]))
    assert_parity("MEAN", attributes, [Operand(draws.int8(rng, *shape), q), axes], output)


def test_mean_int8_over_many(rng):
    x, axes = draws.int8(rng, 2, 60, 70, 3), Operand(np.array([1, 2], np.int32), None, True)
    for scale in (1e-3, 0.05, 10.0):
        inputs = [Operand(x, Quantization(0.05, -128)), axes]
        assert_parity("MEAN", ReduceAttributes(True), inputs, Quantization(scale, 13))


@given(st.data())
def test_sum_int8_parity(data):
    """Where nothing is negative: LiteRT 2.3 reads and writes int8 as uint8 in its SUM, which later sources mend."""
    draw, rng = data.draw, data.draw(generators)
    shape, axes, attributes = draw(reductions())
    x = np.abs(draws.int8(rng, *shape).astype(np.int32)).clip(0, 127).astype(np.int8)
    n = x.size // run_reference("SUM", attributes, [Operand(x.astype(np.int32)), axes])[0].size
    q = Quantization(draw(draws.scales()), draw(st.sampled_from([-128, -3, 0])))
    # A sum of n numbers below 256 fits 100 steps.
    output = Quantization(q.scale[0] * n * 256 / 100, draw(st.integers(0, 20)))
    assert_parity("SUM", attributes, [Operand(x, q), axes], output)


def test_sum_int8_is_the_rounded_sum(rng):
    x, q, output = draws.int8(rng, 5, 40, 3), Quantization(0.02, -9), Quantization(0.5, 4)
    inputs = [Operand(x, q), Operand(np.array([1], np.int32))]
    y = run_reference("SUM", ReduceAttributes(), inputs, [output])[0]
    expected = np.clip((x.astype(np.float64) + 9).sum(1) * 0.02 / 0.5 + 4, -128, 127)
    assert np.abs(y - expected).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
@given(data=st.data())
def test_extremum_int8_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    shape, axes, attributes = draw(reductions())
    q = draw(draws.quantizations())
    assert_parity(op, attributes, [Operand(draws.int8(rng, *shape), q), axes], q)


@given(st.data())
def test_product_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape, axes, attributes = draw(reductions())
    axes = Operand(axes.value, None, True)  # LiteRT forgets the scales where the axes are fed
    q = draw(draws.quantizations(1e-2, 1.0))
    output = Quantization(draw(draws.scales(1e-2, 1e1)), draw(draws.zero_points))
    assert_parity("REDUCE_PROD", attributes, [Operand(draws.int8(rng, *shape), q), axes], output)


@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
@given(data=st.data())
def test_arg_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    shape, dtype = draw(shapes(1, 4)), draw(dtypes("float32", "int32", "int8"))
    x = rng.integers(-3, 4, shape).astype(dtype)  # with ties
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    attributes = ArgAttributes(draw(dtypes("int32", "int64")))
    q = Quantization(0.1) if dtype == np.int8 else None
    assert_parity(op, attributes, [Operand(x, q), index_operand(draw, axis, constant=True)])


@given(st.data())
def test_cumsum_parity(data):
    draw, rng = data.draw, data.draw(generators)
    shape, dtype = draw(shapes(1, 4)), draw(dtypes("float32", "int32", "int64"))
    x = rng.integers(-100, 100, shape).astype(dtype)
    axis = Operand(np.array(draw(st.integers(-len(shape), len(shape) - 1)), np.int32), None, True)
    assert_parity("CUMSUM", CumsumAttributes(draw(st.booleans()), draw(st.booleans())), [Operand(x), axis])


def test_reduces_nothing():
    empty, axis = Operand(np.zeros((2, 0), np.float32)), Operand(np.array([1], np.int32))
    expected = {"SUM": 0, "REDUCE_PROD": 1, "REDUCE_MAX": -np.inf, "REDUCE_MIN": np.inf}
    for op, value in expected.items():
        assert run_reference(op, ReduceAttributes(), [empty, axis])[0].tolist() == [value, value]
    assert np.isnan(run_reference("MEAN", ReduceAttributes(), [empty, axis])[0]).all()
    with pytest.raises(ExecutionError, match="no integers"):
        run_reference("MEAN", ReduceAttributes(), [Operand(empty.value.astype(np.int32)), axis])
    q = Quantization(0.1, 3)
    for op in ("MEAN", "SUM"):
        y = run_reference(op, ReduceAttributes(), [Operand(np.zeros((2, 0), np.int8), q), axis], [Quantization(1.0, 7)])
        assert y[0].tolist() == [7, 7]


def test_products_of_shapes():
    dims = Operand(np.array([1 << 20, 1 << 20], np.int64))
    assert run_reference("REDUCE_PROD", ReduceAttributes(), [dims, Operand(np.array(0, np.int32))])[0] == 1 << 40


def infer(op, attributes, shape, axes, axes_shape=None, dtype=np.float32):
    shapes_ = (len(axes),) if axes is not None else axes_shape
    types = [TensorType(shape, dtype), TensorType(shapes_, INT32)]
    value = None if axes is None else np.array(axes, np.int32)
    return ops.get(op).infer(attributes, types, [None, value])[0].shape


def test_infers_what_is_known():
    keep, drop = ReduceAttributes(True), ReduceAttributes(False)
    assert infer("MEAN", drop, (None, 4, 5, 6), [1, -2]) == (None, 6)
    assert infer("MEAN", keep, (None, 4, 5, 6), [1, 2]) == (None, 1, 1, 6)
    assert infer("MEAN", keep, (2, 4), None, (1,)) == (None, None)
    assert infer("MEAN", drop, (2, 4), None, (1,)) is None
    assert infer("MEAN", drop, None, [1]) is None
    assert infer("ARG_MAX", ArgAttributes(INT64), (2, None, 4), [1]) == (2, 4)
    assert infer("ARG_MAX", ArgAttributes(INT64), (2, 3, 4), None, ()) == (None, None)
    assert infer("CUMSUM", CumsumAttributes(), (2, None), [1]) == (2, None)


def test_refuses_what_does_not_fit():
    for axes in ([2], [-3], [0, 5]):
        with pytest.raises(ShapeError, match="axis"):
            infer("SUM", ReduceAttributes(), (2, 3), axes)
    with pytest.raises(ShapeError, match="vector"):
        infer("SUM", ReduceAttributes(), (2, 3), None, (1, 1))
    with pytest.raises(ShapeError, match="one number"):
        infer("CUMSUM", CumsumAttributes(), (2, 3), None, (2,))
    with pytest.raises(ShapeError, match="nothing"):
        infer("ARG_MIN", ArgAttributes(INT32), (2, 0), [1])
    with pytest.raises(ShapeError, match="int32 or int64"):
        ops.get("ARG_MAX").check(ArgAttributes(np.dtype(np.float32)))
    for op, dtype in [("SUM", np.bool_), ("REDUCE_ANY", np.int32), ("MEAN", np.uint8), ("REDUCE_MAX", np.bool_)]:
        with pytest.raises(UnsupportedError, match=op):
            infer(op, ReduceAttributes(), (2, 3), [0], dtype=dtype)
    with pytest.raises(UnsupportedError, match="axes"):
        ops.get("SUM").infer(
            ReduceAttributes(), [TensorType((2,), np.float32), TensorType((1,), np.float32)], [None, None]
        )

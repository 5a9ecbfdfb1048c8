"""GATHER, GATHER_ND, ONE_HOT, SELECT_V2, TILE, FILL, RANGE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ExecutionError, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import AxisAttributes, GatherAttributes
from tests.support.drawing import dtypes, every, generators, index_operand, moved, numbers, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)
INT = np.dtype(np.int32)


def infer(op, attributes, inputs, values=None):
    kinds = [TensorType(shape, dtype) for shape, dtype in inputs]
    values = [None if v is None else np.array(v, np.int32) for v in values or [None] * len(kinds)]
    return ops.get(op).infer(attributes, kinds, values)[0].shape


@given(st.data())
def test_gather(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    axis = data.draw(st.integers(0, len(shape) - 1))
    batch_dims = data.draw(st.integers(0, axis))
    index_shape = (*shape[:batch_dims], *data.draw(shapes(0 if batch_dims else 1, 2)))
    indices = rng.integers(0, shape[axis], index_shape, data.draw(dtypes("int32", "int64")))
    if data.draw(st.booleans()):
        axis -= len(shape)
    for dtype in every(*"float32 int8 uint8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        operands = [Operand(numbers(rng, dtype, shape), q), Operand(indices)]
        assert_parity("GATHER", GatherAttributes(axis, batch_dims), operands, q)


def test_gather_of_one_scalar():
    operands = [Operand(np.arange(3, dtype=np.float32)), Operand(np.array(1, np.int32))]
    assert run_reference("GATHER", GatherAttributes(), operands)[0] == 1


@pytest.mark.parametrize(
    ("attributes", "shape", "indices", "expected"),
    [
        (GatherAttributes(1), (None, 5, 6), (2, 3), (None, 2, 3, 6)),
        (GatherAttributes(-1, 1), (None, 5, 6), (4, 3), (4, 5, 3)),
        (GatherAttributes(2, -1), (4, 5, 6), (4, 3), (4, 5, 3)),
        (GatherAttributes(), None, (2,), None),
        (GatherAttributes(), (3, 4), None, None),
    ],
)
def test_gather_infers_what_is_known(attributes, shape, indices, expected):
    assert infer("GATHER", attributes, [(shape, FLOAT), (indices, INT)]) == expected


@pytest.mark.parametrize(
    ("attributes", "indices"),
    [
        (GatherAttributes(2), [0]),
        (GatherAttributes(0, 1), [0]),
        (GatherAttributes(1, 2), [0]),
        (GatherAttributes(1, 1), [0, 0, 0]),
        (GatherAttributes(1), [3]),
        (GatherAttributes(1), [-1]),
    ],
)
def test_gather_refuses(attributes, indices):
    with pytest.raises(ShapeError):
        infer("GATHER", attributes, [((2, 3), FLOAT), ((len(indices),), INT)], [None, indices])


def test_gathering_needs_whole_indices():
    for op, attributes in (("GATHER", GatherAttributes()), ("GATHER_ND", None)):
        with pytest.raises(UnsupportedError):
            infer(op, attributes, [((2, 3), FLOAT), ((1,), FLOAT)])


@pytest.mark.parametrize(
    ("op", "attributes", "indices"),
    [("GATHER", GatherAttributes(), [-1]), ("GATHER", GatherAttributes(), [2]), ("GATHER_ND", None, [[0, 3]])],
)
def test_an_index_outside_stops_the_run(op, attributes, indices):
    arrays = [np.zeros((2, 3), np.float32), np.array(indices, np.int32)]
    with pytest.raises(ExecutionError):
        ops.get(op).reference(attributes, arrays, [None, None], [TensorType(None, FLOAT)])


@given(st.data())
def test_gather_nd(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    depth = data.draw(st.integers(1, len(shape)))
    outer = data.draw(shapes(1, 2))
    indices = np.stack([rng.integers(0, d, outer) for d in shape[:depth]], -1).astype(np.int32)
    for dtype in every(*"float32 int8 uint8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        assert_parity("GATHER_ND", None, [Operand(numbers(rng, dtype, shape), q), Operand(indices)], q)


def test_gather_nd_infers_and_refuses():
    assert infer("GATHER_ND", None, [((None, 5, 6), FLOAT), ((None, 2), INT)]) == (None, 6)
    assert infer("GATHER_ND", None, [((None, 5, 6), FLOAT), ((7, None), INT)]) is None
    assert infer("GATHER_ND", None, [((2, 3), FLOAT), ((4, 0), INT)]) == (4, 2, 3)
    for shape, values in (((), None), ((4, 3), None), ((1, 2), [[0, 3]]), ((1, 2), [[-1, 0]])):
        with pytest.raises(ShapeError):
            infer("GATHER_ND", None, [((2, 3), FLOAT), (shape, INT)], [None, values])


def test_gather_nd_of_no_axes(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    (y,) = run_reference("GATHER_ND", None, [Operand(x), Operand(np.zeros((4, 0), np.int32))])
    np.testing.assert_array_equal(y, [x] * 4)


@given(st.data())
def test_one_hot(data):
    shape, rng = data.draw(shapes(0, 3)), data.draw(generators)
    depth = data.draw(st.integers(1, 5))
    axis = data.draw(st.integers(-1, len(shape)))
    for dtype in every(*"float32 int8 uint8 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        indices = rng.integers(-1, depth + 1, shape, data.draw(dtypes("int32", "int64")))
        on, off = (Operand(numbers(rng, dtype, ()), q) for _ in range(2))
        operands = [Operand(indices), index_operand(data.draw, depth), on, off]
        assert_parity("ONE_HOT", AxisAttributes(axis), operands, q)


def test_one_hot_infers_and_refuses():
    def of(axis, depth, shape=(None, 3)):
        kinds = [(shape, INT), ((), INT), ((), FLOAT), ((), FLOAT)]
        return infer("ONE_HOT", AxisAttributes(axis), kinds, [None, depth, None, None])

    assert of(-1, 4) == (None, 3, 4)
    assert of(0, 4) == (4, None, 3)
    assert of(1, None) == (None, None, 3)
    assert of(1, 4, None) is None
    for axis, depth in ((3, 4), (-4, 4), (0, -1)):
        with pytest.raises(ShapeError):
            of(axis, depth)
    with pytest.raises(ShapeError):
        infer("ONE_HOT", AxisAttributes(), [((2,), INT), ((), INT), ((), FLOAT), ((), INT)])


@given(st.data())
def test_select_v2(data):
    shape, rng = data.draw(shapes(1, 4, 2)), data.draw(generators)
    for dtype in every(*"float32 int8 uint8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)

        def operand(kind, quantization=None):
            part = tuple(data.draw(st.sampled_from([1, d])) for d in shape)[data.draw(st.integers(0, 1)) :]
            return Operand(numbers(rng, np.dtype(kind), part), quantization)

        # Of three single elements LiteRT makes a scalar, TensorFlow does not.
        whole = Operand(numbers(rng, dtype, shape), q)
        assert_parity("SELECT_V2", None, [operand(bool), whole, operand(dtype, q)], q)
        assert_parity("SELECT_V2", None, [operand(bool), operand(dtype, q), whole], q)


def test_select_v2_infers_and_refuses():
    assert infer("SELECT_V2", None, [((None, 1), bool), ((4,), FLOAT), ((2, 1), FLOAT)]) == (2, 4)
    with pytest.raises(UnsupportedError):
        infer("SELECT_V2", None, [((2,), INT), ((2,), FLOAT), ((2,), FLOAT)])
    for b, dtype in (((3,), FLOAT), ((2,), INT)):
        with pytest.raises(ShapeError):
            infer("SELECT_V2", None, [((2,), bool), ((2,), FLOAT), (b, dtype)])


@given(st.data())
def test_tile(data):
    shape, rng = data.draw(shapes(1, 4, 1, 4)), data.draw(generators)
    multiples = [data.draw(st.integers(1, 3)) for _ in shape]
    for dtype in every(*"float32 int8 uint8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        operands = [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, multiples)]
        assert_parity("TILE", None, operands, q)


def test_tile_infers_and_refuses():
    assert infer("TILE", None, [((None, 3), FLOAT), ((2,), INT)], [None, [2, 0]]) == (None, 0)
    assert infer("TILE", None, [(None, FLOAT), ((2,), INT)]) == (None, None)
    for multiples in ([1], [1, -1]):
        with pytest.raises(ShapeError):
            infer("TILE", None, [((2, 3), FLOAT), ((len(multiples),), INT)], [None, multiples])


@given(st.data())
def test_fill(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    for dtype in every(*"float32 int8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        operands = [index_operand(data.draw, shape), Operand(numbers(rng, dtype, ()), q)]
        assert_parity("FILL", None, operands, q)


def test_fill_infers_and_refuses():
    assert infer("FILL", None, [((2,), INT), ((), FLOAT)]) == (None, None)
    for dims, value in (([-1], ()), ([1], (2,))):
        with pytest.raises(ShapeError):
            infer("FILL", None, [((1,), INT), (value, FLOAT)], [dims, None])


@given(st.data())
def test_range(data):
    for dtype in every("float32", "int32", "int64"):
        numbers = st.integers(-50, 50) if dtype.kind == "i" else st.floats(-50, 50, width=32)
        start, limit = data.draw(numbers), data.draw(numbers)
        delta = data.draw(st.integers(1, 9) if dtype.kind == "i" else st.floats(0.0625, 9, width=32))
        if limit == start:
            limit += 1
        delta = -delta if limit < start else delta
        operands = [Operand(np.array(v, dtype)) for v in (start, limit, delta)]
        assert_parity("RANGE", None, operands)


def test_range_counts_in_float32():
    operands = [Operand(np.array(v, np.float32)) for v in (2, -(2.0**-23), -1)]
    assert len(assert_parity("RANGE", None, operands)) == 2  # in float64 it would be 3


def test_range_infers_and_refuses():
    of = [((), FLOAT)] * 3
    kinds = [TensorType((), FLOAT)] * 3
    assert infer("RANGE", None, of) == (None,)
    values = [np.array(v, np.float32) for v in (0, 1, 0.25)]
    assert ops.get("RANGE").infer(None, kinds, values)[0].shape == (4,)
    for start, limit, delta in ((0, 1, 0), (0, np.inf, 1), (np.nan, 1, 1)):
        with pytest.raises(ShapeError):
            ops.get("RANGE").infer(None, kinds, [np.array(v, np.float32) for v in (start, limit, delta)])
    values = [np.array(v, np.int64) for v in (-(2**63), 2**63 - 1, 1)]
    assert ops.get("RANGE").infer(None, [TensorType((), np.int64)] * 3, values)[0].shape == (2**64 - 1,)
    tiny = [np.array(v, np.float64) for v in (0, 1e308, 1e-308)]
    with pytest.raises(ShapeError):
        ops.get("RANGE").infer(None, [TensorType((), np.float64)] * 3, tiny)
    with pytest.raises(UnsupportedError):
        infer("RANGE", None, [((), bool)] * 3)

"""RESHAPE, EXPAND_DIMS, SQUEEZE, SHAPE, RANK, TRANSPOSE, BROADCAST_TO."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import DTypeAttributes, SqueezeAttributes
from tests.support.drawing import dtypes, every, generators, index_operand, moved, numbers, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)
STORED = "float32 int8 uint8 int16 int32 int64 bool".split()


def infer(op, attributes, inputs, values=None):
    kinds = [TensorType(shape, dtype) for shape, dtype in inputs]
    values = [None if v is None else np.array(v, np.int32) for v in values or [None] * len(kinds)]
    return ops.get(op).infer(attributes, kinds, values)[0].shape


@given(st.data())
def test_reshape(data):
    shape, rng = data.draw(shapes(0, 5)), data.draw(generators)
    factors = [f for dim in shape for f in (dim, 1)]
    target = data.draw(st.permutations(factors)) if shape else data.draw(st.sampled_from([[], [1], [1, 1]]))
    if target and data.draw(st.booleans()):
        target[data.draw(st.integers(0, len(target) - 1))] = -1
    for dtype in every(*STORED):
        target = target[:6] if np.prod(target[6:], dtype=int) == 1 else [-1]
        q = moved(data.draw, dtype)
        assert_parity("RESHAPE", None, [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, target)], q)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((None, 4, 8), [-1, 32], (None, 32)),
        ((None, 4, 8), [7, 32], (7, 32)),
        ((None, 6), [-1, 4], (None, 4)),
        (None, [2, -1], (2, None)),
        ((3, 8), [-1], (24,)),
        ((0, 8), [-1, 4], (0, 4)),
        ((2, 3), None, (None, None)),
        ((), [1, -1], (1, 1)),
        ((1 << 40, 1 << 40), [-1, 1 << 20], (1 << 60, 1 << 20)),
    ],
)
def test_reshape_infers_what_is_known(shape, target, expected):
    values = [None, None if target is None else np.array(target, np.int64)]
    kinds = [TensorType(shape, FLOAT), TensorType((2 if target is None else len(target),), np.int64)]
    assert ops.get("RESHAPE").infer(None, kinds, values)[0].shape == expected


@pytest.mark.parametrize("target", [[-1, -1], [-1, 4], [5], [-2, 3], [0, -1], [7, 0]])
def test_reshape_refuses(target):
    with pytest.raises(ShapeError):
        infer("RESHAPE", None, [((2, 3), FLOAT), ((len(target),), np.int32)], [None, target])


def test_reshape_refuses_a_shape_of_floats():
    with pytest.raises(UnsupportedError):
        infer("RESHAPE", None, [((2, 3), FLOAT), ((1,), FLOAT)])


@given(st.data())
def test_transpose(data):
    shape, rng = data.draw(shapes(1, 5)), data.draw(generators)
    perm = data.draw(st.permutations(range(len(shape))))
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        assert_parity("TRANSPOSE", None, [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, perm)], q)


def test_transpose_takes_negative_axes_and_unknown_dims():
    given_kinds = [((None, 3, 4), FLOAT), ((3,), np.int32)]
    assert infer("TRANSPOSE", None, given_kinds, [None, [-1, 0, 1]]) == (4, None, 3)
    assert infer("TRANSPOSE", None, given_kinds) == (None, None, None)
    assert infer("TRANSPOSE", None, [(None, FLOAT), ((3,), np.int32)], [None, [0, 2, 1]]) == (None, None, None)


@pytest.mark.parametrize("perm", [[0, 0], [0], [0, 1, 2], [0, 2], [-3, 0]])
def test_transpose_refuses(perm):
    with pytest.raises(ShapeError):
        infer("TRANSPOSE", None, [((2, 3), FLOAT), ((len(perm),), np.int32)], [None, perm])


@given(st.data())
def test_expand_dims(data):
    shape, rng = data.draw(shapes(0, 4)), data.draw(generators)
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        assert_parity("EXPAND_DIMS", None, [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, axis)], q)


def test_expand_dims_infers_and_refuses():
    assert infer("EXPAND_DIMS", None, [((None, 3), FLOAT), ((), np.int32)], [None, -1]) == (None, 3, 1)
    assert infer("EXPAND_DIMS", None, [((2, 3), FLOAT), ((), np.int32)]) == (None, None, None)
    for axis in (3, -4):
        with pytest.raises(ShapeError):
            infer("EXPAND_DIMS", None, [((2, 3), FLOAT), ((), np.int32)], [None, axis])


@given(st.data())
def test_squeeze(data):
    rng = data.draw(generators)
    shape = data.draw(st.lists(st.sampled_from([1, 1, 3]), max_size=5).map(tuple))
    ones = [i for i, d in enumerate(shape) if d == 1]
    axes = data.draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    axes = [a - len(shape) if data.draw(st.booleans()) else a for a in axes]
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        assert_parity("SQUEEZE", SqueezeAttributes(tuple(axes)), [Operand(numbers(rng, dtype, shape), q)], q)


def test_squeeze_infers_and_refuses():
    assert infer("SQUEEZE", SqueezeAttributes((1,)), [((None, 1, 1), FLOAT)]) == (None, 1)
    assert infer("SQUEEZE", SqueezeAttributes((0,)), [((None, 2), FLOAT)]) == (2,)
    assert infer("SQUEEZE", SqueezeAttributes(), [((None, 1), FLOAT)]) is None
    for axes in ((0,), (2,), (-3,)):
        with pytest.raises(ShapeError):
            infer("SQUEEZE", SqueezeAttributes(axes), [((2, 3), FLOAT)])


@given(shapes(1, 5), dtypes("int32", "int64"))
def test_shape(shape, result):
    for dtype in every(*STORED):
        assert_parity("SHAPE", DTypeAttributes(result), [Operand(np.zeros(shape, dtype))])


def test_shape_is_int32_or_int64():
    with pytest.raises(UnsupportedError):
        ops.get("SHAPE").check(DTypeAttributes(FLOAT))
    assert infer("SHAPE", DTypeAttributes(np.dtype(np.int64)), [((None, 2), FLOAT)]) == (2,)
    assert infer("SHAPE", DTypeAttributes(np.dtype(np.int64)), [(None, FLOAT)]) == (None,)


@given(shapes(0, 5))
def test_rank(shape):
    for dtype in every(*STORED):
        assert_parity("RANK", None, [Operand(np.zeros(shape, dtype))])


@given(st.data())
def test_broadcast_to(data):
    target, rng = data.draw(shapes(1, 5)), data.draw(generators)
    shape = tuple(data.draw(st.sampled_from([1, d])) for d in target)[data.draw(st.integers(0, len(target))) :]
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, shape), q)
        assert_parity("BROADCAST_TO", None, [x, index_operand(data.draw, target)], q)


@pytest.mark.parametrize(("shape", "target"), [((2,), [3]), ((2, 3), [3]), ((2,), [-1]), ((2,), [2, 1])])
def test_broadcast_to_refuses(shape, target):
    with pytest.raises(ShapeError):
        infer("BROADCAST_TO", None, [(shape, FLOAT), ((len(target),), np.int32)], [None, target])


def test_transpose_of_a_scalar_and_of_nothing():
    for shape, perm in (((), []), ((0, 3), [1, 0])):
        x = Operand(np.zeros(shape, np.float32))
        (y,) = run_reference("TRANSPOSE", None, [x, Operand(np.array(perm, np.int32))])
        assert y.shape == shape[::-1]


@pytest.mark.parametrize("dtype", "float16 float64 uint16 uint32 uint64".split())
def test_dtypes_that_litert_does_not_move(dtype, rng):
    x = numbers(rng, np.dtype(dtype), (2, 3))
    (y,) = run_reference("TRANSPOSE", None, [Operand(x), Operand(np.array([1, 0], np.int32))])
    np.testing.assert_array_equal(y, x.T)

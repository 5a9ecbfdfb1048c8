"""CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, ops
from schema.ops.attributes import AxisAttributes, SplitAttributes, UnpackAttributes
from tests.support.drawing import every, generators, index_operand, moved, numbers, quantizations, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_all_parity, assert_parity

FLOAT = np.dtype(np.float32)


def infer(op, attributes, inputs, values=None):
    kinds = [TensorType(shape, dtype) for shape, dtype in inputs]
    values = [None if v is None else np.array(v, np.int32) for v in values or [None] * len(kinds)]
    return [kind.shape for kind in ops.get(op).infer(attributes, kinds, values)]


@given(st.data())
def test_concatenation(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for dtype in every(*"float32 int8 int16 int32 int64 bool".split()):
        q = moved(data.draw, dtype)
        inputs = []
        for size in data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)):
            part = list(shape)
            part[axis] = size
            inputs.append(Operand(numbers(rng, dtype, tuple(part)), q))
        assert_parity("CONCATENATION", AxisAttributes(axis), inputs, q)


@given(st.data())
def test_concatenation_of_uint8_rescales(data):
    rng, dtype = data.draw(generators), np.dtype(np.uint8)
    inputs = [Operand(numbers(rng, dtype, (2, n)), data.draw(quantizations(dtype))) for n in (3, 4)]
    output = data.draw(quantizations(dtype))
    real = np.concatenate([(o.value - o.quantization.zero_point) * o.quantization.scale for o in inputs], axis=1)
    # LiteRT rounds in float32; what then is no int32 becomes what the processor makes of it, and saturates here.
    inside = np.abs(real.astype(np.float64) / output.scale) < 2**31 - 300
    assert_parity("CONCATENATION", AxisAttributes(1), inputs, output, within=inside)


def test_concatenation_of_int8_refuses_different_scales():
    kinds = [TensorType((2,), np.int8, Quantization(scale, 0)) for scale in (0.5, 0.25)]
    with pytest.raises(ShapeError, match="requantize"):
        ops.get("CONCATENATION").infer(AxisAttributes(0), kinds, [None, None])


def test_concatenation_infers_what_is_known():
    axis = AxisAttributes(-1)
    assert infer("CONCATENATION", axis, [((None, 2), FLOAT), ((5, 3), FLOAT)]) == [(5, 5)]
    assert infer("CONCATENATION", axis, [((None, None), FLOAT), ((5, 3), FLOAT)]) == [(5, None)]
    assert infer("CONCATENATION", axis, [(None, FLOAT), ((5, 3), FLOAT)]) == [(5, None)]
    assert infer("CONCATENATION", axis, [(None, FLOAT), (None, FLOAT)]) == [None]


@pytest.mark.parametrize(
    ("axis", "a", "b"), [(1, (2, 3), (4, 3)), (2, (2, 3), (2, 3)), (0, (2, 3), (2,)), (-3, (2, 3), (2, 3))]
)
def test_concatenation_refuses(axis, a, b):
    with pytest.raises(ShapeError):
        infer("CONCATENATION", AxisAttributes(axis), [(a, FLOAT), (b, FLOAT)])


def test_concatenation_refuses_mixed_dtypes():
    with pytest.raises(ShapeError):
        infer("CONCATENATION", AxisAttributes(0), [((2,), FLOAT), ((2,), np.int32)])


@given(st.data())
def test_pack(data):
    shape, rng = data.draw(shapes(0, 4)), data.draw(generators)
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    for dtype in every(*"float32 int8 uint8 int16 int32 int64".split()):
        q = moved(data.draw, dtype)
        count = data.draw(st.integers(1, 4))
        assert_parity("PACK", AxisAttributes(axis), [Operand(numbers(rng, dtype, shape), q) for _ in range(count)], q)


def test_pack_infers_and_refuses():
    assert infer("PACK", AxisAttributes(0), [((None, 2), FLOAT), ((5, 2), FLOAT)]) == [(2, 5, 2)]
    assert infer("PACK", AxisAttributes(-1), [((), FLOAT), (None, FLOAT)]) == [(2,)]
    for axis, b in ((0, (3,)), (0, ()), (2, (2,)), (-3, (2,))):
        with pytest.raises(ShapeError):
            infer("PACK", AxisAttributes(axis), [((2,), FLOAT), (b, FLOAT)])


@given(st.data())
def test_split(data):
    shape, rng = list(data.draw(shapes(1, 4))), data.draw(generators)
    axis, num = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.integers(1, 4))
    shape[axis] *= num
    for dtype in every(*"float32 int8 uint8 int16 int32".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, tuple(shape)), q)
        assert_all_parity("SPLIT", SplitAttributes(num), [index_operand(data.draw, axis), x], [q] * num)


def test_split_infers_and_refuses():
    split = SplitAttributes(2)
    assert infer("SPLIT", split, [((), np.int32), ((None, 6), FLOAT)], [1, None]) == [(None, 3)] * 2
    assert infer("SPLIT", split, [((), np.int32), ((None, 6), FLOAT)], [0, None]) == [(None, 6)] * 2
    assert infer("SPLIT", split, [((), np.int32), ((4, 6), FLOAT)]) == [(None, None)] * 2
    assert infer("SPLIT", split, [((1,), np.int32), (None, FLOAT)], [[0], None]) == [None] * 2
    for axis, shape in ((0, (3, 2)), (2, (2, 2)), (-3, (2, 2))):
        with pytest.raises(ShapeError):
            infer("SPLIT", split, [((), np.int32), (shape, FLOAT)], [axis, None])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("SPLIT", SplitAttributes(0)),
        ("SPLIT_V", SplitAttributes(-1)),
        ("UNPACK", UnpackAttributes(0, 0)),
        ("SPLIT", SplitAttributes(2**31 - 1)),
        ("UNPACK", UnpackAttributes(2**31 - 1, 0)),
    ],
)
def test_no_outputs_and_too_many_are_refused(op, attributes):
    with pytest.raises(ShapeError):
        ops.get(op).check(attributes)


@given(st.data())
def test_split_v(data):
    shape, rng = list(data.draw(shapes(1, 4))), data.draw(generators)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    if data.draw(st.booleans()):
        sizes[data.draw(st.integers(0, len(sizes) - 1))] = -1
    for dtype in every(*"float32 int8 uint8 int16 int32 int64".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, tuple(shape)), q)
        # LiteRT wants both of the sizes and the axis stored, or both fed.
        stored = data.draw(st.booleans())
        sizes_and_axis = [index_operand(data.draw, v, constant=stored) for v in (sizes, axis)]
        assert_all_parity("SPLIT_V", SplitAttributes(len(sizes)), [x, *sizes_and_axis], [q] * len(sizes))


def test_split_v_infers_and_refuses():
    def of(shape, sizes, axis):
        kinds = [(shape, FLOAT), ((2,), np.int32), ((), np.int32)]
        return infer("SPLIT_V", SplitAttributes(2), kinds, [None, sizes, axis])

    assert of((None, 6), [-1, 2], 1) == [(None, 4), (None, 2)]
    assert of((None, 6), [-1, 2], 0) == [(None, 6), (2, 6)]
    assert of((None, 6), None, 1) == [(None, None)] * 2
    assert of((3, 6), [0, 3], 0) == [(0, 6), (3, 6)]
    assert of((3, 6), [1, 2], None) == [(None, None)] * 2
    for sizes, axis in (([1, 2], 1), ([7, -1], 1), ([-1, -1], 1), ([-2, 8], 1), ([3, 3], 2)):
        with pytest.raises(ShapeError):
            of((None, 6), sizes, axis)
    with pytest.raises(ShapeError):
        infer("SPLIT_V", SplitAttributes(3), [((6,), FLOAT), ((2,), np.int32), ((), np.int32)])


@given(st.data())
def test_unpack(data):
    shape, rng = data.draw(shapes(1, 4, 1, 4)), data.draw(generators)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for dtype in every(*"float32 int8 uint8 int16 int32 bool".split()):
        q = moved(data.draw, dtype)
        attributes = UnpackAttributes(shape[axis], axis)
        assert_all_parity("UNPACK", attributes, [Operand(numbers(rng, dtype, shape), q)], [q] * shape[axis])


def test_unpack_infers_and_refuses():
    assert infer("UNPACK", UnpackAttributes(3, -1), [((2, None), FLOAT)]) == [(2,)] * 3
    assert infer("UNPACK", UnpackAttributes(3, -1), [(None, FLOAT)]) == [None] * 3
    for axis in (0, 2):
        with pytest.raises(ShapeError):
            infer("UNPACK", UnpackAttributes(3, axis), [((2, 3), FLOAT)])

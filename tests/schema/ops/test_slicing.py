"""SLICE, STRIDED_SLICE, REVERSE_V2."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ShapeError, TensorType, ops
from schema.ops.attributes import StridedSliceAttributes
from tests.support.drawing import every, generators, index_operand, moved, numbers, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)
STORED = "float32 int8 uint8 int16 int32 int64 bool".split()


def infer(op, attributes, shape, operands, count):
    kinds = [TensorType(shape, FLOAT), *(TensorType((count,), np.int32) for _ in operands)]
    values = [None, *(None if v is None else np.array(v, np.int32) for v in operands)]
    return ops.get(op).infer(attributes, kinds, values)[0].shape


@given(st.data())
def test_slice(data):
    shape, rng = data.draw(shapes(1, 5)), data.draw(generators)
    begin = [data.draw(st.integers(0, d - 1)) for d in shape]
    size = [data.draw(st.sampled_from([-1, *range(1, d - b + 1)])) for d, b in zip(shape, begin, strict=True)]
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        stored = data.draw(st.booleans())
        operands = [index_operand(data.draw, v, constant=stored) for v in (begin, size)]
        assert_parity("SLICE", None, [Operand(numbers(rng, dtype, shape), q), *operands], q)


@pytest.mark.parametrize(
    ("shape", "begin", "size", "expected"),
    [
        ((None, 5), [0, 1], [-1, -1], (None, 4)),
        ((None, 5), [2, 1], [3, 2], (3, 2)),
        ((4, 5), None, [3, -1], (3, None)),
        ((4, 5), [1, 1], None, (None, None)),
        (None, [1, 1], [3, -1], (3, None)),
        ((4, 5), [4, 0], [0, 5], (0, 5)),
    ],
)
def test_slice_infers_what_is_known(shape, begin, size, expected):
    assert infer("SLICE", None, shape, [begin, size], 2) == expected


@pytest.mark.parametrize(
    ("begin", "size"), [([-1, 0], [1, 1]), ([0, 0], [-2, 1]), ([0, 3], [1, 3]), ([5, 0], [-1, 1]), (None, [5, 1])]
)
def test_slice_refuses(begin, size):
    with pytest.raises(ShapeError):
        infer("SLICE", None, (4, 5), [begin, size], 2)


def draw_strided(data, shape):
    """begin, end, strides and masks that tf.strided_slice accepts, out-of-range bounds among them."""
    count = data.draw(st.integers(0, len(shape) + 1))
    kinds = [data.draw(st.sampled_from(["slice", "slice", "slice", "shrink", "new", "ellipsis"])) for _ in range(count)]
    seen = False
    for i, kind in enumerate(kinds):
        kinds[i] = "slice" if kind == "ellipsis" and seen else kind
        seen = seen or kind == "ellipsis"
    while sum(k in ("slice", "shrink") for k in kinds) > len(shape):
        kinds.pop(next(i for i, k in enumerate(kinds) if k in ("slice", "shrink")))
    named = sum(k in ("slice", "shrink") for k in kinds)
    begin, end, strides, at = [], [], [], 0
    for kind in kinds:
        dim = shape[at] if at < len(shape) else 1
        if kind == "ellipsis":
            at += len(shape) - named
        elif kind != "new":
            at += 1
        begin.append(data.draw(st.integers(-dim, dim - 1) if kind == "shrink" else st.integers(-dim - 2, dim + 2)))
        end.append(data.draw(st.integers(-dim - 2, dim + 2)))
        strides.append(1 if kind == "shrink" else data.draw(st.sampled_from([1, 1, 2, 3, -1, -2])))

    def mask(kind):
        return sum(1 << i for i, k in enumerate(kinds) if k == kind)

    open_begin, open_end = (data.draw(st.integers(0, (1 << len(kinds)) - 1)) for _ in range(2))
    attributes = StridedSliceAttributes(open_begin, open_end, mask("ellipsis"), mask("new"), mask("shrink"))
    return attributes, [np.array(v, np.int32) for v in (begin, end, strides)]


@given(st.data())
def test_strided_slice_as_tensorflow(data):
    tf = pytest.importorskip("tensorflow")
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    attributes, operands = draw_strided(data, shape)
    x = numbers(rng, FLOAT, shape)
    (ours,) = run_reference("STRIDED_SLICE", attributes, [Operand(x), *map(Operand, operands)])
    masks = {name: getattr(attributes, name) for name in vars(attributes)}
    expected = tf.raw_ops.StridedSlice(input=x, begin=operands[0], end=operands[1], strides=operands[2], **masks)
    np.testing.assert_array_equal(ours, expected.numpy())


@given(st.data())
def test_strided_slice_as_litert(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    begin, end, strides = [], [], []
    for dim in shape:
        stride = data.draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first, last = sorted(data.draw(st.lists(st.integers(0, dim), min_size=2, max_size=2, unique=True)))
        begin.append(first if stride > 0 else last - 1)
        end.append(last if stride > 0 else first - 1 if first else -dim - 1)
        strides.append(stride)
    full = (1 << len(shape)) - 1
    attributes = StridedSliceAttributes(data.draw(st.integers(0, full)), data.draw(st.integers(0, full)))
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        operands = [index_operand(data.draw, v) for v in (begin, end, strides)]
        assert_parity("STRIDED_SLICE", attributes, [Operand(numbers(rng, dtype, shape), q), *operands], q)


@pytest.mark.parametrize(
    ("masks", "shape", "begin", "end", "strides", "expected"),
    [
        ({"shrink_axis_mask": 1}, (None, 5), [0], [1], [1], (5,)),
        ({"begin_mask": 1, "end_mask": 1}, (None, 5), [0], [0], [1], (None, 5)),
        ({"begin_mask": 1, "end_mask": 1}, (None, 5), [0], [0], [2], (None, 5)),
        ({"begin_mask": 1}, (8, 5), None, [-2], [1], (6, 5)),
        ({}, (8, 5), None, [-2], [1], (None, 5)),
        ({"begin_mask": 1, "end_mask": 1}, (8, 5), None, None, [-3], (3, 5)),
        ({"new_axis_mask": 1}, (None, 5), None, None, None, (1, None, 5)),
        ({"ellipsis_mask": 1, "shrink_axis_mask": 2}, (2, 3, 4), [0, -1], [0, 0], [1, 1], (2, 3)),
        ({}, None, [0], [1], [1], None),
    ],
)
def test_strided_slice_infers_what_is_known(masks, shape, begin, end, strides, expected):
    count = 2 if "ellipsis_mask" in masks else 1
    found = infer("STRIDED_SLICE", StridedSliceAttributes(**masks), shape, [begin, end, strides], count)
    assert found == expected


@pytest.mark.parametrize(
    ("masks", "begin", "strides"),
    [
        ({}, [0], [0]),
        ({"shrink_axis_mask": 1}, [4], [1]),
        ({"shrink_axis_mask": 1}, [-5], [1]),
        ({"shrink_axis_mask": 1}, [0], [-1]),
        ({}, [0, 0, 0], [1, 1, 1]),
        ({}, [0, 0], [1]),
    ],
)
def test_strided_slice_refuses(masks, begin, strides):
    values = [None, *(np.array(v, np.int32) for v in (begin, begin, strides))]
    kinds = [TensorType((4, 5), FLOAT), *(TensorType(v.shape, np.int32) for v in values[1:])]
    with pytest.raises(ShapeError):
        ops.get("STRIDED_SLICE").infer(StridedSliceAttributes(**masks), kinds, values)


def test_strided_slice_refuses_two_ellipses():
    with pytest.raises(ShapeError):
        ops.get("STRIDED_SLICE").check(StridedSliceAttributes(ellipsis_mask=5))


@given(st.data())
def test_reverse_v2(data):
    shape, rng = data.draw(shapes(1, 5)), data.draw(generators)
    axes = [data.draw(st.integers(-len(shape), len(shape) - 1))]  # LiteRT reverses neighbouring axes at most
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        assert_parity("REVERSE_V2", None, [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, axes)], q)


def test_reverse_v2_of_many_axes(rng):
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    (y,) = run_reference("REVERSE_V2", None, [Operand(x), Operand(np.array([-1, 0], np.int32))])
    np.testing.assert_array_equal(y, x[::-1, :, ::-1])


@pytest.mark.parametrize("axes", [[2], [-3], [0, -2]])
def test_reverse_v2_refuses(axes):
    with pytest.raises(ShapeError):
        infer("REVERSE_V2", None, (2, 3), [axes], len(axes))

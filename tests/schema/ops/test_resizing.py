"""RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import ResizeAttributes
from tests.support.drawing import every, generators, index_operand, moved, numbers
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

FLOAT = np.dtype(np.float32)
RESIZES = ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"]
# (align_corners, half_pixel_centers): TensorFlow excludes both at once.
FLAGS = [(False, False), (True, False), (False, True)]
sizes = st.integers(1, 13)


def check(data, op):
    """The same resizing of every dtype."""
    rng = data.draw(generators)
    shape = (data.draw(st.integers(1, 2)), data.draw(sizes), data.draw(sizes), data.draw(st.integers(1, 3)))
    size, attributes = [data.draw(sizes), data.draw(sizes)], ResizeAttributes(*data.draw(st.sampled_from(FLAGS)))
    multiple = index_operand(data.draw, [n * data.draw(st.integers(1, 3)) for n in shape[1:3]], constant=True)
    for dtype in every("float32", "int8", "uint8", "int16"):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, shape), q)
        assert_parity(op, attributes, [x, index_operand(data.draw, size)], q)
        assert_parity(op, ResizeAttributes(), [x, multiple], q)


@given(st.data())
def test_resize_bilinear(data):
    check(data, "RESIZE_BILINEAR")


@given(st.data())
def test_resize_nearest_neighbor(data):
    check(data, "RESIZE_NEAREST_NEIGHBOR")


@pytest.mark.parametrize("op", RESIZES)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(
    ("size", "target"), [((5, 8), (10, 16)), ((7, 9), (3, 20)), ((1, 4), (6, 1)), ((32, 3), (5, 11))]
)
def test_resize_as_tensorflow(op, flags, size, target, rng):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=(2, *size, 3)).astype(np.float32)
    (ours,) = run_reference(op, ResizeAttributes(*flags), [Operand(x), Operand(np.array(target, np.int32))])
    resize = tf.raw_ops.ResizeBilinear if op == RESIZES[0] else tf.raw_ops.ResizeNearestNeighbor
    expected = resize(images=x, size=target, align_corners=flags[0], half_pixel_centers=flags[1]).numpy()
    assert_close(ours, expected, 1e-6 if op == RESIZES[0] else 0)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_bilinear_of_other_floats(dtype, rng):
    x = rng.normal(size=(1, 4, 5, 2)).astype(dtype)
    size = Operand(np.array([8, 10], np.int32))
    attributes = ResizeAttributes(half_pixel_centers=True)
    (y,) = run_reference("RESIZE_BILINEAR", attributes, [Operand(x), size])
    (expected,) = run_reference("RESIZE_BILINEAR", attributes, [Operand(x.astype(np.float32)), size])
    assert_close(y.astype(np.float32), expected, 1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("op", RESIZES)
def test_resize_infers_and_refuses(op):
    def of(shape, size, count=2):
        values = [None, None if size is None else np.array(size, np.int32)]
        kinds = [TensorType(shape, FLOAT), TensorType((count,), np.int32)]
        return ops.get(op).infer(ResizeAttributes(), kinds, values)[0].shape

    assert of((None, None, None, 3), [4, 5]) == (None, 4, 5, 3)
    assert of((1, 2, 2, 3), None) == (1, None, None, 3)
    assert of(None, [4, 5]) == (None, 4, 5, None)
    for shape, size in (((1, 2, 2), [4, 5]), ((1, 2, 2, 3), [0, 5]), ((1, 2, 2, 3), [-1, 5]), ((1, 0, 2, 3), [4, 5])):
        with pytest.raises(ShapeError):
            of(shape, size)
    with pytest.raises(ShapeError):
        of((1, 2, 2, 3), None, 3)


def test_bilinear_refuses_what_has_no_meaning():
    with pytest.raises(ShapeError):
        ops.get("RESIZE_BILINEAR").check(ResizeAttributes(True, True))
    kinds = [TensorType((1, 2, 2, 3), np.int64), TensorType((2,), np.int32)]
    with pytest.raises(UnsupportedError):
        ops.get("RESIZE_BILINEAR").infer(ResizeAttributes(), kinds, [None, None])

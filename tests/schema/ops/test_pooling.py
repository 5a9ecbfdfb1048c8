"""AVERAGE_POOL_2D, MAX_POOL_2D, AVERAGE_POOL_3D, MAX_POOL_3D."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import Pool2DAttributes, Pool3DAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import generators
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

PLANES = ["AVERAGE_POOL_2D", "MAX_POOL_2D"]


@pytest.mark.parametrize("op", PLANES)
@pytest.mark.parametrize("size", [(8, 8), (9, 7)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("window", "stride"), [((2, 2), 2), ((3, 3), 2), ((3, 2), 1), ((7, 7), 7), ((1, 1), 3)])
def test_as_tensorflow(rng, op, size, padding, window, stride):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=(2, *size, 3)).astype(np.float32)
    pool = tf.nn.avg_pool2d if op.startswith("AVERAGE") else tf.nn.max_pool2d
    y = run_reference(op, Pool2DAttributes(*window, stride, stride, padding), [Operand(x)])[0]
    assert_close(y, pool(x, window, stride, padding))


@pytest.mark.parametrize("op", ["AVERAGE_POOL_3D", "MAX_POOL_3D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("window", "stride"), [((2, 2, 2), (2, 2, 2)), ((3, 2, 3), (2, 1, 3))])
def test_volumes_as_tensorflow(rng, op, padding, window, stride):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(size=(2, 5, 6, 7, 3)).astype(np.float32)
    pool = tf.nn.avg_pool3d if op.startswith("AVERAGE") else tf.nn.max_pool3d
    y = run_reference(op, Pool3DAttributes(*window, *stride, padding), [Operand(x)])[0]
    assert_close(y, pool(x, window, stride, padding))


@pytest.mark.parametrize("op", PLANES)
@given(data=st.data())
def test_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    sizes = [draw(st.integers(1, 4)) for _ in range(4)]
    attributes = Pool2DAttributes(
        *sizes, padding=draw(st.sampled_from(["SAME", "VALID"])), activation=draw(draws.activations)
    )
    shape = (2, draw(st.integers(4, 9)), draw(st.integers(4, 9)), draw(st.integers(1, 5)))
    if draw(st.booleans()):
        assert_parity(op, attributes, [Operand(rng.normal(size=shape).astype(np.float32) * 5)])
    else:
        q = draw(draws.quantizations())
        assert_parity(op, attributes, [Operand(draws.int8(rng, *shape), q)], q)


@pytest.mark.parametrize("op", PLANES)
def test_explicit_padding_takes_no_part(rng, op):
    x = rng.normal(size=(1, 4, 5, 2)).astype(np.float32) - 10
    attributes = Pool2DAttributes(3, 3, 1, 1, "EXPLICIT", (1, 1, 1, 1))
    same = Pool2DAttributes(3, 3, 1, 1, "SAME")
    assert_close(run_reference(op, attributes, [Operand(x)])[0], run_reference(op, same, [Operand(x)])[0])


def test_int8_means_round_away_from_zero():
    x = np.array([[1, 2], [-1, -2], [127, 127], [-128, -128], [-3, 2]], np.int8).reshape(1, 5, 2, 1)
    q = Quantization(0.1, 5)
    y = assert_parity("AVERAGE_POOL_2D", Pool2DAttributes(1, 2), [Operand(x, q)], q)
    assert y.ravel().tolist() == [2, -2, 127, -128, -1]


def infer(op, shape, dtype=np.float32, **attributes):
    attributes = ops.get(op).Attributes(**attributes)
    ops.get(op).check(attributes)
    return ops.get(op).infer(attributes, [TensorType(shape, dtype)], [None])[0].shape


def test_infers_what_is_known():
    assert infer("MAX_POOL_2D", (None, 9, None, 3), filter_h=3, filter_w=3, stride_h=2) == (None, 4, None, 3)
    assert infer("AVERAGE_POOL_2D", None, filter_h=3) == (None,) * 4
    assert infer("MAX_POOL_3D", (1, 9, 9, 9, 2), filter_d=2, stride_d=2, padding="SAME") == (1, 5, 9, 9, 2)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((1, 5, 5), {}),
        ((1, 2, 5, 3), {"filter_h": 3}),
        ((1, 5, 5, 3), {"filter_h": 0}),
        ((1, 5, 5, 3), {"stride_w": 0}),
        ((1, 5, 5, 3), {"padding": "EXPLICIT", "pads": (1, 0, 0, 0)}),
        ((1, 5, 5, 3), {"padding": "NONE"}),
    ],
)
def test_refuses_what_does_not_fit(shape, attributes):
    with pytest.raises(ShapeError):
        infer("AVERAGE_POOL_2D", shape, **attributes)


def test_refuses_dtypes():
    with pytest.raises(UnsupportedError, match="MAX_POOL_2D"):
        infer("MAX_POOL_2D", (1, 5, 5, 3), np.int32)

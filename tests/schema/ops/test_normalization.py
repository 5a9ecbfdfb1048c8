"""SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, ops
from schema.ops.attributes import SoftmaxAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import generators, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_close, assert_parity, run_reference

OUTPUTS = {
    "SOFTMAX": Quantization(1 / 256, -128),
    "LOG_SOFTMAX": Quantization(16 / 256, 127),
    "L2_NORMALIZATION": Quantization(1 / 128),
}
SOFTMAXES = ["SOFTMAX", "LOG_SOFTMAX"]


def attributes_of(draw, op):
    if op == "L2_NORMALIZATION":
        return None
    return SoftmaxAttributes(beta=1.0 if op == "LOG_SOFTMAX" else draw(draws.scales(0.1, 10)))


@pytest.mark.parametrize("op", OUTPUTS)
@given(data=st.data())
def test_float_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = (rng.normal(size=(*draw(shapes(0, 3)), draw(st.integers(1, 50)))) * draw(draws.scales(1e-2, 1e2))).astype(
        np.float32
    )
    assert_parity(op, attributes_of(draw, op), [Operand(x)], tolerance=2e-6)


@pytest.mark.parametrize("op", OUTPUTS)
@given(data=st.data())
def test_int8_parity(op, data):
    draw, rng = data.draw, data.draw(generators)
    x = draws.int8(rng, *draw(shapes(0, 3)), draw(st.integers(1, 300)))
    if draw(st.booleans()):
        x = np.clip(x, -3, 3)  # many that are equal, all of which count
    assert_parity(op, attributes_of(draw, op), [Operand(x, draw(draws.quantizations(1e-5)))], OUTPUTS[op])


@pytest.mark.parametrize("op", SOFTMAXES)
@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_any_axis_as_tensorflow(rng, op, axis):
    tf = pytest.importorskip("tensorflow")
    x = rng.normal(0, 3, (3, 4, 5)).astype(np.float32)
    function = tf.nn.softmax if op == "SOFTMAX" else tf.nn.log_softmax
    attributes = SoftmaxAttributes(axis=axis)
    assert_close(run_reference(op, attributes, [Operand(x)])[0], function(x, axis))
    integers, q = draws.int8(rng, 3, 4, 5), Quantization(0.05, 7)
    along = run_reference(op, attributes, [Operand(integers, q)], [OUTPUTS[op]])[0]
    moved = np.ascontiguousarray(np.moveaxis(integers, axis, -1))
    last = run_reference(op, SoftmaxAttributes(), [Operand(moved, q)], [OUTPUTS[op]])[0]
    np.testing.assert_array_equal(np.moveaxis(along, axis, -1), last)


def test_saturates():
    x, q = Operand(np.array([[127, -128]], np.int8), Quantization(1.0)), OUTPUTS["SOFTMAX"]
    assert assert_parity("SOFTMAX", SoftmaxAttributes(), [x], q).tolist() == [[127, -128]]
    large = Operand(np.array([1e4, 0, -1e4], np.float32))
    assert run_reference("SOFTMAX", SoftmaxAttributes(), [large])[0].tolist() == [1, 0, 0]
    assert run_reference("LOG_SOFTMAX", SoftmaxAttributes(), [large])[0].tolist() == [0, -1e4, -2e4]


def test_vectors_of_zeros_have_no_direction():
    zeros = Operand(np.zeros((2, 3), np.float32))
    assert not run_reference("L2_NORMALIZATION", None, [zeros])[0].any()


def test_refuses():
    def infer(op, shape, dtype=np.float32, **attributes):
        kind = ops.get(op)
        instance = kind.Attributes and kind.Attributes(**attributes)
        kind.check(instance)
        return kind.infer(instance, [TensorType(shape, dtype)], [None])[0].shape

    assert infer("SOFTMAX", (None, 3)) == (None, 3)
    assert infer("SOFTMAX", None, axis=7) is None
    with pytest.raises(ShapeError, match="axis 2"):
        infer("SOFTMAX", (2, 3), axis=2)
    with pytest.raises(ShapeError, match="beta"):
        infer("SOFTMAX", (2, 3), beta=float("nan"))
    with pytest.raises(ShapeError, match="scalar"):
        infer("L2_NORMALIZATION", ())
    with pytest.raises(UnsupportedError, match="LOG_SOFTMAX"):
        infer("LOG_SOFTMAX", (3,), np.int32)
    x = [Operand(np.zeros((2, 3), np.int8), Quantization(0.1))]
    with pytest.raises(ShapeError, match="beta"):
        run_reference("LOG_SOFTMAX", SoftmaxAttributes(beta=2.0), x, [OUTPUTS["LOG_SOFTMAX"]])
    for op, q in OUTPUTS.items():
        attributes = ops.get(op).Attributes and SoftmaxAttributes()
        with pytest.raises(ShapeError, match="zero point"):
            run_reference(op, attributes, x, [Quantization(q.scale, 1)])
        with pytest.raises(ShapeError, match="scale"):
            run_reference(op, attributes, x, [Quantization(q.scale * 2, q.zero_point)])
    with pytest.raises(ShapeError, match="too small"):
        run_reference("SOFTMAX", SoftmaxAttributes(beta=0.0), x, [OUTPUTS["SOFTMAX"]])

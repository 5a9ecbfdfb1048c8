"""FULLY_CONNECTED and BATCH_MATMUL."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, UnsupportedError, fixedpoint, ops
from schema.ops.attributes import BatchMatMulAttributes, FullyConnectedAttributes
from tests.support import drawing_int8 as draws
from tests.support.drawing import generators, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)


@given(st.data())
def test_fully_connected_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    depth, out = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    x = Operand(draws.int8(rng, *draw(shapes(1, 3, high=4)), depth), draw(draws.quantizations()))
    weights = draws.weights(draw, rng, (out, depth), 0)
    typical = float(x.quantization.scale[0]) * float(np.median(weights.quantization.scale)) * 100
    bias = draw(st.sampled_from([None, draws.bias(rng, x, weights, out)]))
    attributes = FullyConnectedAttributes(draw(st.booleans()), draw(draws.activations))
    assert_parity("FULLY_CONNECTED", attributes, [x, weights, bias], draws.output(draw, typical))


@given(st.data())
def test_fully_connected_float_parity(data):
    draw, rng = data.draw, data.draw(generators)
    x = Operand(rng.normal(size=(*draw(shapes(1, 3, high=4)), 7)).astype(np.float32))
    weights = Operand(rng.normal(size=(5, 7)).astype(np.float32), None, True)
    bias = draw(st.sampled_from([None, Operand(rng.normal(size=5).astype(np.float32), None, True)]))
    attributes = FullyConnectedAttributes(draw(st.booleans()), draw(draws.activations))
    assert_parity("FULLY_CONNECTED", attributes, [x, weights, bias], tolerance=2e-6)


def test_fully_connected_rounds_once():
    """1.4999999 steps are 1, where a convolution's two roundings make 2 of them."""
    x = Operand(np.full((1, 1), 3, np.int8), Quantization(1.0))
    weights = Operand(np.full((1, 1), 100, np.int8), Quantization(0.4999999), True)
    y = assert_parity("FULLY_CONNECTED", FullyConnectedAttributes(), [x, weights, None], Quantization(100.0))
    assert y.item() == 1
    multiplier = float(np.float32(0.4999999)) / 100.0
    assert fixedpoint.requantize(np.array([300]), multiplier, 0, -128, 127).item() == 2


def test_fully_connected_infers_what_is_known():
    def infer(x, weights, keep=True):
        attributes = FullyConnectedAttributes(keep)
        inputs = [TensorType(x, FLOAT), TensorType(weights, FLOAT)]
        return ops.get("FULLY_CONNECTED").infer(attributes, inputs, [None, None])[0].shape

    assert infer((None, 5, 7), (3, 7)) == (None, 5, 3)
    assert infer((None, 5, 7), (3, 7), keep=False) == (None, 3)
    assert infer((4, 5, 7), (3, 35), keep=False) == (4, 3)
    assert infer((1 << 40, 1 << 40), (3, 2), keep=False) == (1 << 79, 3)
    assert infer(None, (3, 7)) is None
    assert infer((4, None), (None, None)) == (4, None)
    for x, weights, keep in [
        ((4, 6), (3, 7), True),
        ((4, 6), (3, 7), False),
        ((), (3, 1), True),
        ((4, 0), (3, 0), True),
    ]:
        with pytest.raises(ShapeError):
            infer(x, weights, keep)
    with pytest.raises(ShapeError):
        infer((4, 7), (3, 7, 1))


@given(st.data())
def test_batch_matmul_int8_parity(data):
    draw, rng = data.draw, data.draw(generators)
    attributes = BatchMatMulAttributes(draw(st.booleans()), draw(st.booleans()))
    m, k, n = (draw(st.integers(1, 9)) for _ in range(3))
    batch_a, batch_b = draw(st.sampled_from([((), ()), ((2,), (2,)), ((3, 1), (1, 2)), ((2, 1, 2), (3, 1))]))
    a = Operand(draws.int8(rng, *batch_a, *((k, m) if attributes.adj_x else (m, k))), draw(draws.quantizations()))
    b = Operand(draws.int8(rng, *batch_b, *((n, k) if attributes.adj_y else (k, n))), draw(draws.quantizations()))
    typical = float(a.quantization.scale[0] * b.quantization.scale[0]) * 100
    assert_parity("BATCH_MATMUL", attributes, [a, b], draws.output(draw, typical))


@given(st.data())
def test_batch_matmul_float_parity(data):
    draw, rng = data.draw, data.draw(generators)
    attributes = BatchMatMulAttributes(draw(st.booleans()), draw(st.booleans()))
    m, k, n = (draw(st.integers(1, 40)) for _ in range(3))
    batch_a, batch_b = draw(st.sampled_from([((), ()), ((2,), (2,)), ((3, 1), (1, 2)), ((2, 1, 2), (3, 1))]))
    a = rng.normal(size=(*batch_a, *((k, m) if attributes.adj_x else (m, k)))).astype(np.float32)
    b = rng.normal(size=(*batch_b, *((n, k) if attributes.adj_y else (k, n)))).astype(np.float32)
    assert_parity("BATCH_MATMUL", attributes, [Operand(a), Operand(b)], tolerance=2e-6)


@pytest.mark.parametrize("batches", [((), ()), ((2,), (2,)), ((4, 1), (3,)), ((2, 1, 5), (3, 1))])
@pytest.mark.parametrize("adjoint", [(False, False), (True, False), (False, True), (True, True)])
def test_batch_matmul_as_tensorflow(rng, batches, adjoint):
    tf = pytest.importorskip("tensorflow")
    a = rng.normal(size=(*batches[0], *((4, 3) if adjoint[0] else (3, 4)))).astype(np.float32)
    b = rng.normal(size=(*batches[1], *((5, 4) if adjoint[1] else (4, 5)))).astype(np.float32)
    y = run_reference("BATCH_MATMUL", BatchMatMulAttributes(*adjoint), [Operand(a), Operand(b)])[0]
    np.testing.assert_allclose(y, tf.matmul(a, b, *adjoint), rtol=1e-5, atol=1e-5)


def test_batch_matmul_infers_what_is_known():
    def infer(a, b, dtype=FLOAT, **adjoint):
        inputs = [TensorType(a, dtype), TensorType(b, dtype)]
        return ops.get("BATCH_MATMUL").infer(BatchMatMulAttributes(**adjoint), inputs, [None, None])[0].shape

    assert infer((None, 3, 4), (4, 5)) == (None, 3, 5)
    assert infer((None, 4, 3), (2, 4, None), adj_x=True) == (2, 3, None)
    assert infer((1, 3, 4), (7, 5, 4), adj_y=True) == (7, 3, 5)
    assert infer(None, (4, 5)) is None
    for a, b in [((3, 4), (5, 6)), ((4,), (4, 5)), ((2, 3, 4), (3, 4, 5))]:
        with pytest.raises(ShapeError):
            infer(a, b)
    with pytest.raises(UnsupportedError):
        infer((3, 4), (4, 5), np.bool_)

"""PAD, PADV2, MIRROR_PAD."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, ops
from schema.ops.attributes import MirrorPadAttributes
from tests.support.drawing import every, generators, index_operand, moved, numbers, shapes
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)
STORED = "float32 int8 uint8 int16 int32 int64".split()


def infer(op, attributes, shape, paddings, rank=2):
    kinds = [TensorType(shape, FLOAT), TensorType((rank, 2), np.int32)]
    kinds += [TensorType((), FLOAT)] * (op == "PADV2")
    values = [None, None if paddings is None else np.array(paddings, np.int32), None]
    return ops.get(op).infer(attributes, kinds, values[: len(kinds)])[0].shape


def draw_paddings(data, shape, most=lambda dim: 3):
    return [[data.draw(st.integers(0, most(d))) for _ in range(2)] for d in shape]


@given(st.data())
def test_pad(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        paddings = index_operand(data.draw, draw_paddings(data, shape))
        assert_parity("PAD", None, [Operand(numbers(rng, dtype, shape), q), paddings], q)


def test_pad_of_int8_is_the_zero_point():
    q = Quantization(0.5, -7)
    x = Operand(np.ones((1, 1), np.int8), q)
    (y,) = run_reference("PAD", None, [x, Operand(np.array([[0, 0], [1, 1]], np.int32))], (q,))
    np.testing.assert_array_equal(y, [[-7, 1, -7]])


@given(st.data())
def test_padv2(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        paddings = index_operand(data.draw, draw_paddings(data, shape))
        value = Operand(numbers(rng, dtype, (1,)), q, data.draw(st.booleans()))
        assert_parity("PADV2", None, [Operand(numbers(rng, dtype, shape), q), paddings, value], q)


@given(st.data())
def test_mirror_pad(data):
    shape, rng = data.draw(shapes(1, 4)), data.draw(generators)
    mode = data.draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))
    for dtype in every(*STORED):
        q = moved(data.draw, dtype)
        paddings = draw_paddings(data, shape, lambda dim: dim - (mode == "REFLECT"))
        operands = [Operand(numbers(rng, dtype, shape), q), index_operand(data.draw, paddings)]
        assert_parity("MIRROR_PAD", MirrorPadAttributes(mode), operands, q)


@pytest.mark.parametrize("op", ["PAD", "PADV2", "MIRROR_PAD"])
def test_padding_infers_and_refuses(op):
    attributes = MirrorPadAttributes() if op == "MIRROR_PAD" else None
    assert infer(op, attributes, (None, 5), [[1, 2], [3, 4]]) == (None, 12)
    assert infer(op, attributes, (6, 5), None) == (None, None)
    assert infer(op, attributes, None, [[1, 2], [3, 4]]) == (None, None)
    with pytest.raises(ShapeError):
        infer(op, attributes, (6, 5), [[-1, 0], [0, 0]])
    with pytest.raises(ShapeError):
        infer(op, attributes, (6, 5, 4), [[0, 0], [0, 0]])


@pytest.mark.parametrize(("mode", "amount"), [("REFLECT", 5), ("SYMMETRIC", 6)])
def test_mirror_pad_refuses_more_than_there_is(mode, amount):
    attributes = MirrorPadAttributes(mode)
    assert infer("MIRROR_PAD", attributes, (5,), [[0, amount - 1]], 1) == (5 + amount - 1,)
    with pytest.raises(ShapeError):
        infer("MIRROR_PAD", attributes, (5,), [[0, amount]], 1)


def test_padv2_refuses_many_values():
    kinds = [TensorType((2,), FLOAT), TensorType((1, 2), np.int32), TensorType((2,), FLOAT)]
    with pytest.raises(ShapeError):
        ops.get("PADV2").infer(None, kinds, [None] * 3)

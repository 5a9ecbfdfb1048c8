"""SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, ops
from schema.ops.attributes import BlockSizeAttributes
from tests.support.drawing import every, generators, index_operand, moved, numbers
from tests.support.litert import Operand
from tests.support.parity import assert_parity, run_reference

FLOAT = np.dtype(np.float32)
small = st.integers(1, 3)


def infer(op, shape, block, paddings, axes=2):
    kinds = [TensorType(shape, FLOAT), TensorType((axes,), np.int32), TensorType((axes, 2), np.int32)]
    values = [None if v is None else np.array(v, np.int32) for v in (None, block, paddings)]
    return ops.get(op).infer(None, kinds, values)[0].shape


@given(st.data())
def test_space_to_depth(data):
    rng, block = data.draw(generators), data.draw(small)
    n, h, w, c = (data.draw(small) for _ in range(4))
    for dtype in every(*"float32 int8 uint8 int32 int64".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, (n, h * block, w * block, c)), q)
        assert_parity("SPACE_TO_DEPTH", BlockSizeAttributes(block), [x], q)


@given(st.data())
def test_depth_to_space(data):
    rng, block = data.draw(generators), data.draw(small)
    n, h, w, c = (data.draw(small) for _ in range(4))
    for dtype in every(*"float32 int8 uint8 int32 int64".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, (n, h, w, c * block * block)), q)
        assert_parity("DEPTH_TO_SPACE", BlockSizeAttributes(block), [x], q)


@pytest.mark.parametrize(
    ("op", "shape", "expected"),
    [
        ("SPACE_TO_DEPTH", (None, 4, None, 3), (None, 2, None, 12)),
        ("SPACE_TO_DEPTH", None, (None, None, None, None)),
        ("DEPTH_TO_SPACE", (None, None, 2, 12), (None, None, 4, 3)),
        ("DEPTH_TO_SPACE", (1, 2, 2, None), (1, 4, 4, None)),
    ],
)
def test_space_and_depth_infer_what_is_known(op, shape, expected):
    assert ops.get(op).infer(BlockSizeAttributes(2), [TensorType(shape, FLOAT)], [None])[0].shape == expected


@pytest.mark.parametrize("op", ["SPACE_TO_DEPTH", "DEPTH_TO_SPACE"])
def test_space_and_depth_refuse(op):
    for shape in ((1, 3, 4, 6), (1, 4, 6)):
        with pytest.raises(ShapeError):
            ops.get(op).infer(BlockSizeAttributes(2), [TensorType(shape, FLOAT)], [None])
    for size in (0, -2):
        with pytest.raises(ShapeError):
            ops.get(op).check(BlockSizeAttributes(size))


def draw_blocked(data):
    """(batch, blocks per axis, block sizes, rest): one or two axes, as LiteRT has them."""
    count = data.draw(st.integers(1, 2))
    block = [data.draw(small) for _ in range(count)]
    counts = [data.draw(small) for _ in range(count)]
    return data.draw(small), counts, block, (data.draw(small),)


@given(st.data())
def test_space_to_batch_nd(data):
    rng = data.draw(generators)
    batch, counts, block, rest = draw_blocked(data)
    spatial, paddings = [], []
    for n, b in zip(counts, block, strict=True):
        total = data.draw(st.integers(0, n * b - 1))
        before = data.draw(st.integers(0, total))
        paddings.append([before, total - before])
        spatial.append(n * b - total)
    for dtype in every(*"float32 int8 uint8 int16 int32 int64".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, (batch, *spatial, *rest)), q)
        assert_parity("SPACE_TO_BATCH_ND", None, [x, *(index_operand(data.draw, v) for v in (block, paddings))], q)


@given(st.data())
def test_batch_to_space_nd(data):
    rng = data.draw(generators)
    batch, counts, block, rest = draw_blocked(data)
    crops = []
    for n, b in zip(counts, block, strict=True):
        total = data.draw(st.integers(0, n * b - 1))
        before = data.draw(st.integers(0, total))
        crops.append([before, total - before])
    for dtype in every(*"float32 int8 uint8 int16 int32 int64".split()):
        q = moved(data.draw, dtype)
        x = Operand(numbers(rng, dtype, (batch * int(np.prod(block)), *counts, *rest)), q)
        assert_parity("BATCH_TO_SPACE_ND", None, [x, *(index_operand(data.draw, v) for v in (block, crops))], q)


def test_three_axes_as_tensorflow(rng):
    tf = pytest.importorskip("tensorflow")
    x, block, paddings = rng.normal(size=(2, 3, 4, 5, 6)), [2, 1, 3], [[1, 0], [0, 2], [3, 1]]
    operands = [np.array(block, np.int32), np.array(paddings, np.int32)]
    (y,) = run_reference("SPACE_TO_BATCH_ND", None, [Operand(x), *map(Operand, operands)])
    np.testing.assert_array_equal(y, tf.space_to_batch_nd(x, block, paddings).numpy())
    (back,) = run_reference("BATCH_TO_SPACE_ND", None, [Operand(y), *map(Operand, operands)])
    np.testing.assert_array_equal(back, x)


def test_space_to_batch_nd_of_int8_pads_with_the_zero_point():
    q = Quantization(0.5, 9)
    operands = [Operand(np.ones((1, 1, 1), np.int8), q), Operand(np.array([2], np.int32))]
    (y,) = run_reference("SPACE_TO_BATCH_ND", None, [*operands, Operand(np.array([[0, 1]], np.int32))], (q,))
    np.testing.assert_array_equal(y.ravel(), [1, 9])


@pytest.mark.parametrize(
    ("op", "shape", "block", "amounts", "expected"),
    [
        ("SPACE_TO_BATCH_ND", (None, 4, None, 3), [2, 2], [[1, 1], [0, 0]], (None, 3, None, 3)),
        ("SPACE_TO_BATCH_ND", (2, 4, 4, 3), [2, 2], None, (8, None, None, 3)),
        ("SPACE_TO_BATCH_ND", (2, 4, 4, 3), None, None, (None, None, None, 3)),
        ("SPACE_TO_BATCH_ND", None, [2, 2], [[1, 1], [0, 0]], None),
        ("BATCH_TO_SPACE_ND", (None, 4, None, 3), [2, 2], [[1, 1], [0, 0]], (None, 6, None, 3)),
        ("BATCH_TO_SPACE_ND", (8, 4, 4, 3), [2, 2], None, (2, None, None, 3)),
    ],
)
def test_batches_infer_what_is_known(op, shape, block, amounts, expected):
    assert infer(op, shape, block, amounts) == expected


@pytest.mark.parametrize(
    ("op", "shape", "block", "amounts"),
    [
        ("SPACE_TO_BATCH_ND", (1, 4, 4, 3), [0, 2], [[0, 0], [0, 0]]),
        ("SPACE_TO_BATCH_ND", (1, 4, 4, 3), [2, 2], [[-1, 1], [0, 0]]),
        ("SPACE_TO_BATCH_ND", (1, 4, 4, 3), [3, 2], [[0, 0], [0, 0]]),
        ("SPACE_TO_BATCH_ND", (1, 4), [2, 2], [[0, 0], [0, 0]]),
        ("BATCH_TO_SPACE_ND", (4, 4, 4, 3), [2, -2], [[0, 0], [0, 0]]),
        ("BATCH_TO_SPACE_ND", (4, 4, 4, 3), [2, 2], [[8, 1], [0, 0]]),
        ("BATCH_TO_SPACE_ND", (6, 4, 4, 3), [2, 2], [[0, 0], [0, 0]]),
    ],
)
def test_batches_refuse(op, shape, block, amounts):
    with pytest.raises(ShapeError):
        infer(op, shape, block, amounts)

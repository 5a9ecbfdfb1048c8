"""Strided copies, equal to the references, for elements of every size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.lowering.movement import Part, phantom
from schema import Node, Quantization, Tensor, TensorType
from schema.ops import attributes as a
from tests.support.engine import compare

DTYPES = ["int8", "uint8", "bool", "int16", "float16", "float32", "int32", "int64", "float64"]


def constant(*values) -> Tensor:
    return Tensor.from_array("c", np.array(values, np.int32))


def draw_array(shape, dtype, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def check(op, operands, shape=(2, 4, 5, 6), dtype="float32", attributes=None, outputs=1, **options):
    x = Tensor("x", dtype, (None, *shape[1:]))
    y = [Tensor("y", dtype) for _ in range(outputs)]
    inputs = [x if operand == "x" else operand for operand in operands]
    compare([Node(op, inputs, y, attributes)], [x], y, [draw_array(shape, dtype)], **options)


@pytest.mark.parametrize("dtype", DTYPES)
@given(perm=st.permutations(range(4)))
def test_transpose(dtype, perm):
    check("TRANSPOSE", ["x", constant(*perm)], dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slices_and_concatenation(dtype):
    check("SLICE", ["x", constant(0, 1, 2, 3), constant(2, 2, 3, 2)], dtype=dtype)
    for axis in (-1, 0, 1, 2):
        check("CONCATENATION", ["x", "x", "x"], dtype=dtype, attributes=a.AxisAttributes(axis=axis))
        check("PACK", ["x", "x"], dtype=dtype, attributes=a.AxisAttributes(axis=axis))
    check("SPLIT", [constant(3), "x"], dtype=dtype, attributes=a.SplitAttributes(num=3), outputs=3)
    check("SPLIT_V", ["x", constant(1, 3, 1), constant(2)], dtype=dtype, attributes=a.SplitAttributes(num=3), outputs=3)


def test_strided_slices():
    for begin, end, strides, masks in [
        ((0, 1, 0, 1), (2, 4, 5, 6), (1, 2, 3, 1), {}),
        ((0, -1, 4, 5), (2, -9, 0, -9), (1, -1, -2, -3), {"end_mask": 2}),
        ((0, 2, 0, 1), (0, 0, 0, 0), (1, 1, 1, 1), {"end_mask": 15, "shrink_axis_mask": 2}),
        ((0, 1), (0, 3), (1, 1), {"ellipsis_mask": 1}),
        ((0, 0, 0), (0, 1, 2), (1, 1, 1), {"new_axis_mask": 1, "end_mask": 4}),
    ]:
        attributes = a.StridedSliceAttributes(**masks)
        check("STRIDED_SLICE", ["x", constant(*begin), constant(*end), constant(*strides)], attributes=attributes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spreading(dtype):
    check("TILE", ["x", constant(1, 2, 1, 3)], dtype=dtype)
    check("BROADCAST_TO", ["x", constant(3, 2, 4, 5, 6)], dtype=dtype)


def test_blocks():
    check("SPACE_TO_DEPTH", ["x"], (2, 4, 6, 3), attributes=a.BlockSizeAttributes(block_size=2))
    check("DEPTH_TO_SPACE", ["x"], (2, 4, 5, 12), attributes=a.BlockSizeAttributes(block_size=2))
    nearest = a.ResizeAttributes(half_pixel_centers=True)
    check("RESIZE_NEAREST_NEIGHBOR", ["x", constant(8, 15)], attributes=nearest)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=4))
def test_pad(amounts):
    paddings = Tensor.from_array("p", np.array(amounts, np.int32))
    check("PAD", ["x", paddings])
    check("PADV2", ["x", paddings, Tensor.from_array("v", np.float32(-2.5))])


def test_quantized_pad_is_the_zero_point():
    quantization = Quantization(0.5, -7)
    x, y = Tensor("x", np.int8, (2, 3), quantization), Tensor("y", np.int8, quantization=quantization)
    paddings = Tensor.from_array("p", np.array([[1, 0], [0, 2]], np.int32))
    (result,) = compare([Node("PAD", [x, paddings], [y])], [x], [y], [draw_array((2, 3), np.int8)])
    assert (result[0] == -7).all()


def test_views_outside_of_their_tensor_are_refused():
    """A copy is checked when it is planned: kernels check nothing."""
    whole = phantom(TensorType((4, 4), np.dtype(np.float32)))
    assert Part(np.zeros(16), whole, whole[1:, ::-1]).offset == 28
    with pytest.raises(ValueError, match="of a tensor of 64"):
        _ = Part(np.zeros(16), whole, np.lib.stride_tricks.as_strided(whole, (5, 4), (16, 4))).offset

"""Data movement of tensors without axes and of tensors without elements."""

import numpy as np
import pytest

from schema.ops import attributes as a
from tests.support.litert import Operand
from tests.support.parity import run_reference

SCALAR = np.array(3, np.float32)
NONE = np.zeros(0, np.int32)
NO_PAIRS = np.zeros((0, 2), np.int32)
EMPTY = np.zeros((0, 3), np.float32)
EMPTY_IMAGE = np.zeros((0, 4, 4, 4), np.float32)


@pytest.mark.parametrize(
    ("op", "attributes", "arrays"),
    [
        ("PAD", None, [SCALAR, NO_PAIRS]),
        ("PADV2", None, [SCALAR, NO_PAIRS, SCALAR]),
        ("MIRROR_PAD", a.MirrorPadAttributes(), [SCALAR, NO_PAIRS]),
        ("TILE", None, [SCALAR, NONE]),
        ("REVERSE_V2", None, [SCALAR, NONE]),
        ("SLICE", None, [SCALAR, NONE, NONE]),
        ("STRIDED_SLICE", a.StridedSliceAttributes(), [SCALAR, NONE, NONE, NONE]),
        ("BROADCAST_TO", None, [SCALAR, NONE]),
        ("SELECT_V2", None, [np.array(True), SCALAR, SCALAR]),
        ("FILL", None, [NONE, SCALAR]),
        ("CAST", a.DTypeAttributes(np.dtype(np.float32)), [SCALAR]),
        ("SQUEEZE", a.SqueezeAttributes(), [SCALAR]),
        ("RESHAPE", None, [SCALAR, NONE]),
        ("TRANSPOSE", None, [SCALAR, NONE]),
    ],
)
def test_a_scalar_stays_one(op, attributes, arrays):
    (y,) = run_reference(op, attributes, list(map(Operand, arrays)))
    assert y.shape == ()
    assert y == SCALAR


@pytest.mark.parametrize(
    ("op", "attributes", "arrays", "shape"),
    [
        ("MIRROR_PAD", a.MirrorPadAttributes(), [EMPTY, np.array([[0, 0], [1, 1]], np.int32)], (0, 5)),
        ("PAD", None, [EMPTY, np.array([[1, 1], [0, 0]], np.int32)], (2, 3)),
        ("GATHER", a.GatherAttributes(), [EMPTY, NONE], (0, 3)),
        ("GATHER", a.GatherAttributes(1, 1), [EMPTY, np.zeros((0, 2), np.int32)], (0, 2)),
        ("GATHER_ND", None, [EMPTY, np.zeros((0, 2), np.int32)], (0,)),
        ("CONCATENATION", a.AxisAttributes(0), [EMPTY, np.ones((2, 3), np.float32)], (2, 3)),
        ("SPLIT", a.SplitAttributes(1), [np.array(0, np.int32), EMPTY], (0, 3)),
        ("STRIDED_SLICE", a.StridedSliceAttributes(), [EMPTY, *(np.array([v], np.int32) for v in (5, -9, -1))], (0, 3)),
        ("SPACE_TO_DEPTH", a.BlockSizeAttributes(2), [EMPTY_IMAGE], (0, 2, 2, 16)),
        ("DEPTH_TO_SPACE", a.BlockSizeAttributes(2), [EMPTY_IMAGE], (0, 8, 8, 1)),
        ("RESIZE_BILINEAR", a.ResizeAttributes(), [EMPTY_IMAGE, np.array([2, 3], np.int32)], (0, 2, 3, 4)),
        ("RESIZE_NEAREST_NEIGHBOR", a.ResizeAttributes(), [EMPTY_IMAGE, np.array([2, 3], np.int32)], (0, 2, 3, 4)),
        ("TILE", None, [EMPTY, np.array([2, 0], np.int32)], (0, 0)),
        ("RANGE", None, [np.array(v, np.int32) for v in (3, 3, 1)], (0,)),
        ("RESHAPE", None, [EMPTY, np.array([0, -1], np.int32)[::-1][:1]], (0,)),
    ],
)
def test_nothing_has_a_shape(op, attributes, arrays, shape):
    (y,) = run_reference(op, attributes, list(map(Operand, arrays)))
    assert y.shape == shape

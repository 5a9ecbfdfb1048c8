"""Multiply-accumulates: with ones for all operands and no padding, the outputs add up to the number of products."""

import numpy as np
import pytest

from schema import TensorType, ops
from schema.ops import attributes as a

CASES = {
    "CONV_2D": (a.Conv2DAttributes(2, 1), [(2, 9, 8, 6), (10, 3, 2, 6)]),
    "CONV_2D of groups": (a.Conv2DAttributes(), [(1, 5, 5, 6), (4, 3, 3, 3)]),
    "CONV_3D": (a.Conv3DAttributes(), [(1, 4, 5, 6, 3), (2, 3, 2, 3, 7)]),
    "DEPTHWISE_CONV_2D": (a.Conv2DAttributes(2, 2), [(1, 9, 9, 3), (1, 3, 3, 6)]),
    "TRANSPOSE_CONV": (a.Conv2DAttributes(2, 2), [np.array([1, 9, 9, 5], np.int32), (5, 3, 3, 2), (1, 4, 4, 2)]),
    "FULLY_CONNECTED": (a.FullyConnectedAttributes(), [(3, 2, 7), (5, 7)]),
    "FULLY_CONNECTED of rows": (a.FullyConnectedAttributes(keep_num_dims=False), [(3, 2, 7), (5, 14)]),
    "BATCH_MATMUL": (a.BatchMatMulAttributes(), [(2, 1, 3, 4), (5, 4, 6)]),
    "BATCH_MATMUL transposed": (a.BatchMatMulAttributes(adj_x=True, adj_y=True), [(2, 4, 3), (2, 6, 4)]),
}


@pytest.mark.parametrize("case", CASES)
def test_macs_are_the_products_that_are_added_up(case):
    attributes, operands = CASES[case]
    op = ops.get(case.split()[0])
    arrays = [np.ones(o, np.float32) if isinstance(o, tuple) else o for o in operands]
    types = [None if x is None else TensorType(x.shape, x.dtype) for x in arrays]
    outputs = op.infer(attributes, types, [x if x is not None and x.dtype == np.int32 else None for x in arrays])
    result = op.reference(attributes, arrays, types, outputs)[0]
    assert op.macs(attributes, types, outputs) == result.sum()


def test_macs_of_recurrent_layers():
    f32 = np.dtype(np.float32)
    x, weights, again = (TensorType(shape, f32) for shape in ((2, 5, 3), (4, 3), (4, 4)))
    vector = TensorType((4,), f32)
    rnn = ops.get("UNIDIRECTIONAL_SEQUENCE_RNN")
    assert rnn.macs(a.SequenceRNNAttributes(), [x, weights, again, vector], []) == 2 * 5 * (12 + 16)
    lstm, projected = ops.get("UNIDIRECTIONAL_SEQUENCE_LSTM"), TensorType((4, 2), f32)
    gates = [x, *[weights] * 4, *[again] * 4, None, None, None, *[vector] * 4]
    assert lstm.macs(a.LSTMAttributes(), gates, []) == 2 * 5 * 4 * (12 + 16)
    coupled = [x, None, *[weights] * 3, None, *[projected] * 3, *[None] * 4, *[vector] * 3, TensorType((2, 4), f32)]
    assert lstm.macs(a.LSTMAttributes(), coupled, []) == 2 * 5 * (3 * (12 + 8) + 8)


def test_macs_of_svdf():
    x, features, times = (TensorType(shape, np.dtype(np.float32)) for shape in ((3, 4), (6, 4), (6, 5)))
    assert ops.get("SVDF").macs(a.SVDFAttributes(rank=2), [x, features, times], []) == 3 * 6 * (4 + 5)


def test_other_ops_have_none():
    x = TensorType((1, 4), np.dtype(np.float32))
    assert ops.get("ADD").macs(a.ArithmeticAttributes(), [x, x], [x]) == 0

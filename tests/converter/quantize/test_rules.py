import numpy as np
import pytest

import schema.ops
from converter.quantize.rules import INT8, INT16, NO_INT16, RULES, SENSITIVE, TYPELESS, Scales
from converter.quantize.scales import representable
from converter.quantize.weights import BIASES
from schema import Quantization, TensorType, UnsupportedError
from tests.support.float_graphs import Builder

OPERANDS = {
    "CONV_2D": [(1, 8, 8, 4), (8, 3, 3, 4), (8,)],
    "DEPTHWISE_CONV_2D": [(1, 8, 8, 4), (1, 3, 3, 4), (4,)],
    "CONV_3D": [(1, 4, 4, 4, 3), (2, 3, 3, 3, 8), (8,)],
    "CONV_3D_TRANSPOSE": [[1, 5, 5, 5, 8], (2, 2, 2, 8, 3), (1, 4, 4, 4, 3), (8,)],
    **{op: [(1, 4, 4, 4, 3)] for op in "MAX_POOL_3D AVERAGE_POOL_3D".split()},
    "FULLY_CONNECTED": [(2, 4), (3, 4), (3,)],
    "TRANSPOSE_CONV": [[1, 10, 10, 8], (8, 3, 3, 4), (1, 8, 8, 4), (8,)],
    "BATCH_MATMUL": [(2, 3, 4), (2, 4, 5)],
    "SPLIT": [[3], (1, 8, 8, 4)],
    "SPLIT_V": [(1, 8, 8, 4), [2, 2], [3]],
    "PADV2": [(1, 2), [[1, 1], [0, 0]], ()],
    "PAD": [(1, 2), [[1, 1], [0, 0]]],
    "MIRROR_PAD": [(3, 2), [[1, 1], [0, 0]]],
    "SELECT_V2": [np.ones((2, 2), bool), (2, 2), (2, 2)],
    "RESHAPE": [(2, 3), [3, 2]],
    "TRANSPOSE": [(2, 3), [1, 0]],
    "TILE": [(2, 3), [1, 2]],
    "GATHER": [(2, 3), [0, 1]],
    "GATHER_ND": [(2, 3), [[0, 1]]],
    "EXPAND_DIMS": [(2, 3), [0]],
    "SLICE": [(2, 3), [0, 0], [1, 1]],
    "STRIDED_SLICE": [(2, 3), [0, 0], [1, 1], [1, 1]],
    "BROADCAST_TO": [(2, 3), [2, 2, 3]],
    "REVERSE_V2": [(2, 3), [0]],
    "SPACE_TO_BATCH_ND": [(1, 4, 4, 1), [2, 2], [[0, 0], [0, 0]]],
    "BATCH_TO_SPACE_ND": [(4, 4, 4, 1), [2, 2], [[0, 0], [0, 0]]],
    "RESIZE_BILINEAR": [(1, 4, 4, 1), [8, 8]],
    "RESIZE_NEAREST_NEIGHBOR": [(1, 4, 4, 1), [8, 8]],
    **{op: [(1, 4, 4, 2), 1] for op in "MEAN SUM REDUCE_MAX REDUCE_MIN ARG_MAX ARG_MIN".split()},
    **{op: [(1, 4, 4, 2)] * 2 for op in "ADD SUB MUL PRELU MAXIMUM MINIMUM CONCATENATION PACK".split()},
}
"""Shapes of the operands that hold numbers; values of the others."""
ATTRIBUTES = {
    "SPLIT": {"num": 2},
    "SPLIT_V": {"num": 2},
    "UNPACK": {"num": 1},
    "SPACE_TO_DEPTH": {"block_size": 2},
    "DEPTH_TO_SPACE": {"block_size": 2},
}


def _array(operand):
    return np.asarray(operand, None if isinstance(operand, np.ndarray) else np.int32)


@pytest.mark.parametrize(("dtype", "op"), [(dtype, op) for dtype, rules in RULES.items() for op in rules])
def test_the_schema_has_a_meaning_for_each_rule(dtype, op):
    rule, kind = RULES[dtype][op], schema.ops.get(op)
    assert rule.dtype == dtype
    operands = OPERANDS.get(op, [(1, 4, 4, 4)])
    stored = {rule.slopes: np.int8}
    if rule.weights is not None:
        stored |= {rule.weights.weights: np.int8, rule.weights.bias: BIASES[dtype][0]}
    types, values = [], []
    for i, operand in enumerate(operands):
        holds_numbers = isinstance(operand, tuple)
        assert holds_numbers == (i in rule.data_inputs(len(operands)) or i in stored)
        values.append(None if holds_numbers else _array(operand))
        types.append(TensorType(operand, stored.get(i, dtype), Quantization(0.1)) if holds_numbers else
                     TensorType(values[-1].shape, values[-1].dtype))  # fmt: skip
    attributes = None if kind.Attributes is None else kind.Attributes(**ATTRIBUTES.get(op, {}))
    outputs = kind.infer(attributes, types, values)
    assert all((t.dtype == dtype) != (rule.scales is Scales.INDICES) for t in outputs)
    if rule.weights is not None:
        channels = types[rule.weights.weights].shape[rule.weights.axis]
        assert outputs[0].shape[-1] == channels == types[rule.weights.bias].shape[0]


@pytest.mark.parametrize("op", sorted(NO_INT16))
def test_the_schema_has_no_int16_form_where_there_is_no_rule(op):
    kind, operands = schema.ops.get(op), OPERANDS.get(op, [(1, 4, 4, 4)])
    values = [None if isinstance(operand, tuple) else _array(operand) for operand in operands]
    types = [TensorType(operand, INT16, Quantization(0.1)) if value is None else TensorType(value.shape, value.dtype)
             for operand, value in zip(operands, values, strict=True)]  # fmt: skip
    with pytest.raises(UnsupportedError, match="int16"):
        kind.infer(kind.Attributes and kind.Attributes(), types, values)


def test_every_op_is_known_by_one_name_only():
    ruled = RULES[INT8].keys() | RULES[INT16].keys()
    assert {*ruled, *SENSITIVE, *TYPELESS} <= set(schema.ops.NAMES)
    assert not ruled & SENSITIVE
    assert not ruled & TYPELESS


@pytest.mark.parametrize(
    ("dtype", "op"), [(dtype, op) for dtype, rules in RULES.items() for op, rule in rules.items() if rule.fixed]
)
def test_fixed_outputs_hold_the_whole_function(dtype, op):
    builder = Builder()
    x = builder.input("x", 256, 3)
    graph = builder.end(builder.node(op, x))
    data = np.random.default_rng(0).normal(0, 8, (256, 3)).astype(np.float32)
    (real,) = schema.evaluate.run(graph, [data])
    fixed = RULES[dtype][op].fixed
    low, high = representable(fixed, dtype)
    inside = (real >= low - 0.5 * fixed.scale) & (real <= high + 1.01 * fixed.scale)
    assert inside.mean() > (0.7 if op == "LOG_SOFTMAX" else 0.999)  # exp(-16) is as good as never

import numpy as np
import pytest

import runtime
import schema
from converter.quantize import Options, quantize
from converter.quantize.weight_only import AXES
from schema import evaluate
from schema.ops import unidirectional_sequence_lstm as lstm
from schema.ops.attributes import BatchMatMulAttributes, Conv2DAttributes, Conv3DAttributes
from tests.support.float_graphs import Builder, clustered


def network():
    builder = Builder()
    x = builder.input("x", None, 8, 8, 16)
    y = builder.depthwise(builder.conv(x, 32, name="conv"), 1, 3, name="depthwise", activation="RELU")
    y = builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="pool")
    return builder.end(builder.dense(builder.dense(y, 60, name="dense"), 4, name="few"))


def size(graph):
    return len(schema.write(schema.Model([graph])))


def test_weights_are_a_quarter_and_nothing_else_changes(rng):
    graph, data = network(), rng.normal(0, 1, (16, 8, 8, 16)).astype(np.float32)
    whole, weights = size(graph), sum(node.inputs[1].value.nbytes for node in graph.nodes if node.name != "pool")
    ops = [node.op for node in graph.nodes]
    (expected,) = evaluate.run(graph, [data])
    kernel = graph.nodes[0].inputs[1].value
    report = quantize(graph, Options("int8-weights"))
    assert [node.op for node in graph.nodes] == ops
    assert size(graph) < whole - 0.7 * weights
    stored = graph.nodes[0].inputs[1]
    assert (stored.dtype, stored.constant.values.dtype, stored.quantization) == (np.float32, np.int8, None)
    np.testing.assert_array_equal(np.abs(stored.constant.values).max((1, 2, 3)), 127)  # each channel's whole range
    step = stored.constant.channel_scale[:, None, None, None]
    assert (np.abs(stored.value - kernel) <= 0.5001 * step).all()
    assert graph.nodes[1].inputs[1].constant.axis == 3
    found = runtime.load(schema.write(schema.Model([graph])))(data)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, evaluate.run(graph, [data])[0], rtol=1e-4, atol=1e-5)
    assert 10 * np.log10(np.var(expected) / np.mean((expected - found) ** 2)) > 35
    assert "3 constants stored as int8, 1 kept as float32" in str(report)


def test_weights_rounded_to_suit_calibration_data_lose_less(rng):
    errors = []
    mixing = rng.normal(0, 1, (8, 64))
    data, unseen = ((rng.normal(0, 1, (400, 8)) @ mixing + 1).astype(np.float32) for _ in range(2))  # inputs alike
    for calibration in (None, data):
        builder = Builder()
        x = builder.input("x", None, 64)
        graph = builder.end(builder.dense(x, 32, name="dense"))
        (expected,) = evaluate.run(graph, [unseen])
        report = quantize(graph, Options("int8-weights"), calibration)
        errors.append(evaluate.run(graph, [unseen])[0] - expected)
        assert report.samples == (0 if calibration is None else 400)
    nearest, suited = errors
    assert suited.std() < 0.5 * nearest.std()
    assert np.abs(suited.mean(0)).max() < 0.5 * np.abs(nearest.mean(0)).max()


def test_shared_and_missing_biases_are_left_alone(rng):
    builder = Builder()
    x = builder.input("x", None, 32)
    first, second, third = (builder.constant(rng.normal(0, 1, (32, 32))) for _ in range(3))
    bias = builder.constant(rng.normal(0, 1, 32))
    y = builder.node("FULLY_CONNECTED", x, first, bias)
    y = builder.node("FULLY_CONNECTED", builder.node("FULLY_CONNECTED", y, second, bias), third, None)
    graph, before = builder.end(y), bias.value
    quantize(graph, Options("int8-weights"), rng.normal(3, 1, (50, 32)).astype(np.float32))
    np.testing.assert_array_equal(bias.value, before)
    assert {node.inputs[1].constant.values.dtype for node in graph.nodes} == {np.dtype(np.int8)}


def test_few_weights_and_layers_that_are_kept_stay_float(rng):
    graph = network()
    rows = quantize(graph, Options("int8-weights", keep_float="dense")).rows
    reasons = {row.layer: row.reason for row in rows}
    assert list(reasons) == ["conv", "depthwise", "dense", "few"]
    assert reasons["conv"] == reasons["depthwise"] == ""
    assert "240 weights are too few" in reasons["few"]
    assert "keep_float names it ('dense')" in reasons["dense"]
    kinds = {node.name: node.inputs[1].constant.values.dtype for node in graph.nodes if node.name in reasons}
    assert kinds["dense"] == np.float32
    assert kinds["conv"] == np.int8
    scale = graph.nodes[0].inputs[1].constant.channel_scale
    assert rows[0].weight_scale == (scale.min(), scale.max())


def test_clustered_pruned_and_narrow_weights(rng):
    builder = Builder()
    x = builder.input("x", None, 64)
    kernel = clustered(rng.normal(0, 1, (64, 64)), 16)
    pruned = builder.constant(np.where(rng.random((64, 64)) < 0.7, 0, rng.normal(0, 1, (64, 64))))
    half = schema.Tensor("half", np.float32)
    half.set_constant(schema.Constant(rng.normal(0, 1, (64, 64)).astype(np.float16)))
    y = x
    for name, weights in (("clustered", kernel), ("pruned", pruned), ("half", half)):
        y = builder.node("FULLY_CONNECTED", y, weights, None, name=name)
    graph, zeros = builder.end(y), pruned.value == 0
    values = kernel.value
    reasons = {row.layer: row.reason for row in quantize(graph, Options("int8-weights")).rows}
    assert "few distinct values" in reasons["clustered"]
    assert list(reasons) == ["clustered", "pruned"]
    np.testing.assert_array_equal(kernel.value, values)
    assert (pruned.value[zeros] == 0).all()
    assert half.constant.values.dtype == np.float16


RNN, SVDF = schema.ops.attributes.SequenceRNNAttributes(), schema.ops.attributes.SVDFAttributes(rank=1)
STRIDED = Conv2DAttributes(stride_h=2, stride_w=2, padding="SAME")


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "axes"),
    [
        ("CONV_2D", [..., (16, 3, 3, 8), (16,)], Conv2DAttributes(), {1: 0}),
        ("DEPTHWISE_CONV_2D", [..., (1, 6, 6, 8), (8,)], Conv2DAttributes(padding="SAME"), {1: 3}),
        ("TRANSPOSE_CONV", [[2, 16, 16, 12], (12, 3, 3, 8), ...], STRIDED, {1: 0}),
        ("CONV_3D", [..., (2, 2, 2, 8, 16), None], Conv3DAttributes(), {1: 4}),
        ("CONV_3D_TRANSPOSE", [[2, 8, 8, 8, 6], (2, 2, 2, 6, 8), ...], Conv3DAttributes(padding="SAME"), {1: 3}),
        ("BATCH_MATMUL", [..., (2, 16, 24)], BatchMatMulAttributes(), {1: 2}),
        ("BATCH_MATMUL", [..., (2, 24, 16)], BatchMatMulAttributes(adj_y=True), {1: 1}),
        ("GATHER", [(40, 16), ...], None, {0: 0}),
        ("UNIDIRECTIONAL_SEQUENCE_RNN", [..., (20, 16), (20, 20), (20,)], RNN, {1: 0, 2: 0}),
        ("SVDF", [..., (20, 16), (20, 15)], SVDF, {1: 0, 2: 0}),
    ],
)
def test_where_the_output_channels_are(op, operands, attributes, axes, rng):
    shapes = {"BATCH_MATMUL": (2, 3, 16), "GATHER": (40,), "UNIDIRECTIONAL_SEQUENCE_RNN": (2, 5, 16), "SVDF": (2, 16)}
    shape = shapes.get(op, (2, 8, 8, 8, 8) if "3D" in op else (2, 8, 8, 8))
    data = np.arange(40, dtype=np.int32) if op == "GATHER" else rng.normal(0, 1, shape).astype(np.float32)
    builder = Builder()
    x = builder.input("x", *shape, dtype=data.dtype)
    inputs = [
        x if operand is ... else None if operand is None
        else builder.constant(operand, np.int32) if isinstance(operand, list)
        else builder.constant(rng.normal(0, 0.1, operand))
        for operand in operands
    ]  # fmt: skip
    graph = builder.end(builder.nodes(op, *inputs, attributes=attributes)[0])
    (expected,) = evaluate.run(graph, [data])
    quantize(graph, Options("int8-weights"))
    for i, axis in axes.items():
        stored = inputs[i].constant
        assert (stored.values.dtype, stored.axis) == (np.int8, axis)
        others = tuple(j for j in range(stored.values.ndim) if j != axis)
        np.testing.assert_array_equal(np.abs(stored.values).max(others), 127)
    (found,) = evaluate.run(graph, [data])
    assert 10 * np.log10(np.var(expected) / np.mean((expected - found) ** 2)) > 35


def test_every_operand_that_is_weights_is_tested():
    (mark,) = test_where_the_output_channels_are.pytestmark
    tested = {case[0]: case[3] for case in mark.args[1]}
    untested = {op: axes for op, axes in AXES.items() if tested.get(op) != axes}
    assert set(untested) == {"FULLY_CONNECTED", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert untested["FULLY_CONNECTED"] == {1: 0}  # in the tests above
    kernels = [*range(lstm.WEIGHTS, lstm.PEEPHOLES), lstm.PROJECTION]  # (cells, in), (cells, out), (out, cells)
    assert untested["UNIDIRECTIONAL_SEQUENCE_LSTM"] == dict.fromkeys(kernels, 0)

import numpy as np
import pytest

import schema
from converter.quantize import Options, quantize
from schema import CalibrationError, InputError, evaluate
from schema.ops.attributes import (
    ArgAttributes,
    AxisAttributes,
    BatchMatMulAttributes,
    Conv2DAttributes,
    DTypeAttributes,
    Pool2DAttributes,
)
from tests.support.float_graphs import Builder, clustered
from tests.support.quantized_graphs import CONVERSIONS, assert_litert_equal, errors_in_steps, quantized_nodes

AXIS = AxisAttributes(3)


def images(rng, count=24, size=13, channels=3):
    smooth = rng.normal(0, 1, (count, size, size, channels))
    return (smooth + np.roll(smooth, 1, 1) + np.roll(smooth, 1, 2)).astype(np.float32)


def network(batch=None):
    """Residual, branches, odd sizes, strides: most of what a classifier has."""
    builder = Builder()
    x = builder.input("image", batch, 13, 13, 3)
    stem = builder.conv(x, 8, name="stem", stride_h=2, stride_w=2, activation="RELU6")
    y = builder.depthwise(stem, 2, name="depthwise", activation="RELU")
    y = builder.conv(y, 8, 1, name="project")
    y = builder.node("ADD", stem, y, name="residual")
    pooled = builder.node("MAX_POOL_2D", y, attributes=Pool2DAttributes(3, 3, 1, 1, "SAME"), name="pool")
    wide = builder.conv(y, 4, 5, name="wide", dilation_h=2, dilation_w=2, activation="RELU")
    y = builder.node("CONCATENATION", pooled, wide, attributes=AXIS, name="concatenate")
    y = builder.node("AVERAGE_POOL_2D", y, attributes=Pool2DAttributes(2, 2, 2, 2, "SAME"), name="average")
    squeezed = builder.dense(builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="mean"), 12)
    gate = builder.node("RESHAPE", builder.node("LOGISTIC", squeezed), builder.constant([-1, 1, 1, 12], np.int32))
    y = builder.node("MUL", y, gate, name="excite")
    y = builder.node("HARD_SWISH", y, name="hard_swish")
    y = builder.dense(builder.node("MEAN", y, builder.constant([1, 2], np.int32)), 5, name="logits")
    return builder.end(builder.node("SOFTMAX", y, name="softmax"), y, names=["probabilities", "logits"])


def signal_to_noise(real, quantized):
    return 10 * np.log10(np.var(real) / np.mean((real - quantized) ** 2))


@pytest.mark.parametrize("observer", ["minmax", "percentile", "entropy"])
def test_a_network_keeps_its_results(rng, observer):
    graph, x = network(), images(rng)
    expected = evaluate.run(graph, [x])
    report = quantize(graph, Options("int8", observer=observer), x)
    found = evaluate.run(graph, [x])
    assert [array.dtype for array in found] == [np.float32, np.float32]
    assert signal_to_noise(expected[1], found[1]) > 25
    assert np.abs(expected[0] - found[0]).max() < 0.03
    assert {row.dtype for row in report.rows} == {"int8"}
    assert report.samples == 24
    assert len(quantized_nodes(graph)) == len(report.rows)


def test_every_node_is_within_a_quantization_step_of_its_float_op(rng):
    graph, x = network(), images(rng)
    quantize(graph, Options("int8"), x)
    steps = list(errors_in_steps(graph, [x]))
    assert len(steps) == len(quantized_nodes(graph)) > 15
    for node, error in steps:
        assert error <= (1.6 if node.op == "HARD_SWISH" else 1.01), f"{node}: {error} steps"


def test_every_node_gives_the_integers_that_litert_gives(rng):
    graph, x = network(), images(rng, 3)
    quantize(graph, Options("int8"), x)
    assert_litert_equal(graph, [x])


def test_the_float_signature_stays_with_conversions_only_at_the_border(rng):
    graph = network()
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    quantize(graph, Options("int8"), images(rng))
    assert (graph.inputs, graph.outputs) == (inputs, outputs)
    assert (graph.input_names, graph.output_names) == (["image"], ["probabilities", "logits"])
    conversions = [node.op for node in graph.nodes if node.op in CONVERSIONS]
    assert conversions == ["QUANTIZE", "DEQUANTIZE", "DEQUANTIZE"]
    names = [node.name for node in graph.nodes if node.op not in CONVERSIONS]
    assert names == [node.name for node in network().nodes]


def test_integer_inputs_and_outputs(rng):
    graph, integer, x = network(), network(), images(rng)
    quantize(graph, Options("int8"), x)
    quantize(integer, Options("int8", io_dtype="int8"), x)
    assert not [node for node in integer.nodes if node.op in CONVERSIONS]
    (given,), (probabilities, logits) = integer.inputs, integer.outputs
    assert given.dtype == probabilities.dtype == logits.dtype == np.int8
    assert probabilities.quantization == schema.Quantization(1 / 256, -128)
    found = evaluate.run(integer, [schema.fixedpoint.quantize(x, given.quantization, np.int8)])
    expected = evaluate.run(graph, [x])
    for tensor, array, real in zip(integer.outputs, found, expected, strict=True):
        np.testing.assert_array_equal(schema.fixedpoint.dequantize(array, tensor.quantization), real)


def test_the_file_holds_the_same_graph(rng):
    graph, x = network(), images(rng)
    quantize(graph, Options("int8"), x)
    again = schema.read(schema.write(schema.Model([graph]))).graph
    for found, expected in zip(evaluate.run(again, [x]), evaluate.run(graph, [x]), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("samples", [lambda x: [x, {"image": x}], lambda x: [[x[:7], x[7:]], iter([(x, None)])]])
def test_batches_do_not_change_the_result(rng, samples):
    files = []
    for calibration in samples(images(rng)):
        graph = network()
        quantize(graph, Options("int8", observer="entropy"), calibration)
        files.append(schema.write(schema.Model([graph])))
    assert len(set(files)) == 1


def test_padding_is_the_zero_point(rng):
    builder = Builder()
    x = builder.input("x", None, 5, 5, 2)
    y = builder.node("PAD", x, builder.constant([[0, 0], [1, 1], [2, 2], [0, 0]], np.int32))
    graph = builder.end(builder.node("SUB", builder.conv(y, 3), builder.constant(0.0)), y)
    data = (images(rng, 8, 5, 2) + 3).astype(np.float32)
    quantize(graph, Options("int8"), data)
    assert (evaluate.run(graph, [data])[1][:, 0] == 0).all()
    assert max(error for _, error in errors_in_steps(graph, [data])) <= 1.01


def test_islands_of_float(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 6, 3)
    y = builder.conv(x, 4, name="before", activation="RELU")
    logarithm = builder.node("LOG1P", y, name="log")
    y = builder.node("ADD", builder.conv(logarithm, 4, name="after"), y, name="residual")
    shape = builder.node("SHAPE", y, attributes=DTypeAttributes(np.dtype(np.int32)))
    index = builder.node("ARG_MAX", y, builder.constant(3, np.int32), attributes=ArgAttributes(np.dtype(np.int64)))
    graph = builder.end(y, logarithm, index, shape)
    data = images(rng, 8, 6)
    expected = evaluate.run(graph, [data])
    report = quantize(graph, Options("int8"), data)
    assert [node.op for node in graph.nodes] == (
        "QUANTIZE CONV_2D DEQUANTIZE LOG1P QUANTIZE CONV_2D ADD SHAPE ARG_MAX DEQUANTIZE".split()
    )
    found = evaluate.run(graph, [data])
    for i in (0, 1):
        assert signal_to_noise(expected[i], found[i]) > 25
    assert (found[2] == expected[2]).mean() > 0.9
    np.testing.assert_array_equal(found[3], expected[3])
    (row,) = [row for row in report.rows if row.dtype == "float32"]
    assert (row.layer, row.reason) == ("log", "LOG1P is too sensitive for 8-bit inputs")
    assert "LOG1P is too sensitive" in str(report)


def test_requantizing_into_a_concatenation(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 6, 3)
    small = builder.conv(x, 4, name="small", activation="RELU6")
    large = builder.node("MUL", builder.conv(x, 4), builder.constant(20.0), name="large")
    joined = builder.node("CONCATENATION", small, large, attributes=AXIS)
    graph = builder.end(builder.conv(small, 4), joined)
    data = images(rng, 8, 6)
    quantize(graph, Options("int8"), data)
    assert [node.op for node in graph.nodes].count("QUANTIZE") == 2
    (node,) = [node for node in graph.nodes if node.op == "CONCATENATION"]
    assert {str(tensor.quantization) for tensor in node.inputs} == {str(node.outputs[0].quantization)}
    assert max(error for _, error in errors_in_steps(graph, [data])) <= 1.01
    assert_litert_equal(graph, [data])


def test_clustered_kernels_stay_clustered_and_pruned_ones_pruned(rng):
    builder = Builder()
    x = builder.input("x", None, 8, 8, 3)
    kernels = []
    y = x
    for channels in (16, 24, 8):
        values = rng.normal(0, 0.3, (channels, 3, 3, y.shape[-1]))
        values[np.abs(values) < 0.2] = 0
        kernel = clustered(values[values != 0].reshape(-1), 15)
        centers = np.append(np.unique(kernel.value), 0).astype(np.float32)
        values = centers[np.abs(values[..., None] - centers).argmin(-1)]
        factors = rng.choice([-1, 1], channels) * rng.uniform(0.3, 3, channels)  # BatchNorm, folded
        kernel = schema.Tensor.from_array("kernel", values)
        kernel.set_constant(schema.Constant(values, factors.astype(np.float32), 0))
        kernels.append(kernel)
        bias = builder.constant(rng.normal(0, 0.2, channels))
        y = builder.node("CONV_2D", y, kernel, bias, attributes=Conv2DAttributes(activation="RELU", padding="SAME"))
    graph = builder.end(y)
    data = images(rng, 8, 8)
    expected = evaluate.run(graph, [data])
    report = quantize(graph, Options("int8"), data)
    assert [row.clusters for row in report.rows] == [16, 16, 16]
    for node, kernel in zip(quantized_nodes(graph), kernels, strict=True):
        assert np.unique(node.inputs[1].constant.values).size == 16
        np.testing.assert_array_equal(node.inputs[1].value == 0, kernel.value == 0)
    assert signal_to_noise(expected[0], evaluate.run(graph, [data])[0]) > 20
    assert max(error for _, error in errors_in_steps(graph, [data])) <= 1.01


def test_shared_kernels_are_stored_once(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 6, 4)
    kernel = builder.constant(rng.normal(0, 0.2, (4, 3, 3, 4)))
    first = builder.node("CONV_2D", x, kernel, attributes=Conv2DAttributes(padding="SAME"))
    graph = builder.end(builder.node("CONV_2D", first, kernel, attributes=Conv2DAttributes(padding="SAME")))
    quantize(graph, Options("int8"), images(rng, 4, 6, 4))
    one, two = quantized_nodes(graph)
    assert one.inputs[1] is two.inputs[1]


def test_values_that_are_not_finite_keep_their_layers_float(rng):
    builder = Builder()
    x = builder.input("x", None, 6)
    y = builder.node("MUL", builder.dense(x, 4, name="one"), builder.constant(3e38), name="overflow")
    z = builder.node("RESHAPE", y, builder.constant([-1, 2, 2], np.int32), name="moved")
    graph = builder.end(z, builder.dense(builder.node("MINIMUM", y, builder.constant(9.0)), 3, name="two"))
    data = 10 * rng.normal(0, 1, (16, 6)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        report = quantize(graph, Options("int8"), data)
    reasons = {row.layer: row.reason for row in report.rows}
    assert reasons["one"] == ""
    assert "not finite" in reasons["overflow"]
    assert reasons["moved"]
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(CalibrationError, match="'overflowing' cannot be"):
        quantize(builder.end(y, names=["overflowing"]), Options("int8", io_dtype="int8"), data)


def test_masked_attention_is_computed_in_float(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 8)
    scores = builder.node(
        "BATCH_MATMUL", builder.dense(x, 8), builder.dense(x, 8), attributes=BatchMatMulAttributes(adj_y=True)
    )
    visible = builder.constant(np.tril(np.ones((6, 6))), bool)
    masked = builder.node("SELECT_V2", visible, scores, builder.constant(-1e9), name="mask")
    attention = builder.node("SOFTMAX", masked, name="softmax")
    y = builder.node("BATCH_MATMUL", attention, builder.dense(x, 8), name="attend")
    graph = builder.end(y)
    data = rng.normal(0, 1, (16, 6, 8)).astype(np.float32)
    expected = evaluate.run(graph, [data])[0]
    reasons = {row.layer: row.reason for row in quantize(graph, Options("int8"), data).rows}
    assert "as masks make them" in reasons["mask"]
    assert "as masks make them" in reasons["softmax"]
    assert reasons["attend"] == ""
    assert signal_to_noise(expected, evaluate.run(graph, [data])[0]) > 25


def test_an_input_that_is_an_output_and_one_that_is_not_used(rng):
    builder = Builder()
    x, unused = builder.input("x", None, 6), builder.input("unused", None, 2)
    graph = builder.end(builder.dense(x, 4), x)
    data = {"x": rng.normal(0, 1, (16, 6)).astype(np.float32), "unused": np.zeros((16, 2), np.float32)}
    quantize(graph, Options("int8"), data)
    np.testing.assert_array_equal(evaluate.run(graph, [data["x"], data["unused"]])[1], data["x"])
    assert graph.inputs == [x, unused]
    builder = Builder()
    x, unused = builder.input("x", None, 6), builder.input("unused", None, 2)
    graph = builder.end(builder.dense(x, 4), x)
    quantize(graph, Options("int8", io_dtype="int8"), data)
    assert [tensor.dtype for tensor in (*graph.inputs, *graph.outputs)] == [np.int8] * 4
    assert graph.outputs[1] is graph.inputs[0]


def test_progress_is_told(rng):
    steps = []
    quantize(network(), Options("int8"), images(rng, 70), progress=lambda *step: steps.append(step))
    assert steps == [("calibration", 32, 70), ("calibration", 64, 70), ("calibration", 70, 70)]
    steps.clear()
    quantize(network(), Options("int8"), [images(rng, 5)] * 2, progress=lambda *step: steps.append(step))
    assert steps == [("calibration", 5, None), ("calibration", 10, None)]


def test_wrong_arguments_leave_the_graph_as_it_was(rng):
    graph, x = network(), images(rng)
    before = schema.write(schema.Model([graph]))
    for error, message, arguments in (
        (InputError, "nothing to do", ("none",)),
        (InputError, "calibration data is for", ("float16", x)),
        (CalibrationError, "int8 needs calibration", ("int8",)),
        (CalibrationError, "has shape", ("int8", x[:, :4])),
        (CalibrationError, "has NaN", ("int8", [x, x * np.nan])),
    ):
        with pytest.raises(error, match=message):
            quantize(graph, Options(arguments[0]), *arguments[1:])
    assert schema.write(schema.Model([graph])) == before

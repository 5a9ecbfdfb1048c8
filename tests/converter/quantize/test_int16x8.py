"""int16 activations, in the whole graph and layer by layer."""

import numpy as np
import pytest

import runtime
import schema
from converter.quantize import Options, quantize
from converter.quantize.rules import INT8, INT16
from schema import InputError, evaluate
from schema.ops.attributes import AxisAttributes, ResizeAttributes
from tests.support.float_graphs import Builder
from tests.support.quantized_graphs import CONVERSIONS, assert_litert_equal, errors_in_steps, quantized_nodes


def images(rng, count=24, size=12, channels=3):
    x = rng.normal(0, 1, (count, size, size, channels))
    return (x + np.roll(x, 1, 1) + np.roll(x, 1, 2)).astype(np.float32)


def network():
    """Of the ops that 16x8 has: windows, sums, products, moves, rectifiers, a gate."""
    builder = Builder()
    x = builder.input("image", None, 12, 12, 3)
    stem = builder.conv(x, 8, name="stem", stride_h=2, stride_w=2, activation="RELU6")
    y = builder.node("PRELU", builder.depthwise(stem, 2, name="depthwise"), builder.constant(np.linspace(-0.5, 1, 16)))
    y = builder.node("ADD", stem, builder.conv(y, 8, 1, name="project"), name="residual")
    weights = builder.constant(builder.rng.normal(0, 0.2, (8, 2, 2, 8)))
    size = builder.constant([1, 12, 12, 8], np.int32)
    strided = schema.ops.get("TRANSPOSE_CONV").Attributes(stride_h=2, stride_w=2, padding="SAME")
    up = builder.node("TRANSPOSE_CONV", size, weights, y, None, attributes=strided, name="up")
    other = builder.node(
        "RESIZE_BILINEAR", builder.node("NEG", y, name="neg"), builder.constant([12, 12], np.int32),
        attributes=ResizeAttributes(half_pixel_centers=True), name="resize",
    )  # fmt: skip
    y = builder.node("CONCATENATION", up, other, attributes=AxisAttributes(3), name="concatenate")
    mean = builder.node("MEAN", y, builder.constant([1, 2], np.int32), name="mean")
    gate = builder.node("LOGISTIC", builder.dense(mean, 16, name="squeeze"), name="gate")
    y = builder.node("MUL", y, builder.node("RESHAPE", gate, builder.constant([-1, 1, 1, 16], np.int32)), name="excite")
    y = builder.node("LEAKY_RELU", y, name="leaky")
    y = builder.dense(builder.node("MEAN", y, builder.constant([1, 2], np.int32)), 5, name="logits")
    return builder.end(builder.node("SOFTMAX", y, name="softmax"), y, names=["probabilities", "logits"])


def fixed_batch(graph):
    """TRANSPOSE_CONV above is told its batch."""
    graph.inputs[0].shape = (1, *graph.inputs[0].shape[1:])
    return graph


def signal_to_noise(real, quantized):
    return 10 * np.log10(np.var(real) / np.mean((real - quantized) ** 2))


def conversions(graph):
    """(op, from, to) of the nodes that change types, in order."""
    return [(n.op, str(n.inputs[0].dtype), str(n.outputs[0].dtype)) for n in graph.nodes if n.op in CONVERSIONS]


@pytest.fixture(scope="module")
def quantized():
    rng = np.random.default_rng(3)
    graph, x = fixed_batch(network()), images(rng)
    expected = [evaluate.run(graph, [image[None]]) for image in x]
    report = quantize(graph, Options("int16x8"), x)
    return graph, x, expected, report


def test_a_network_keeps_its_results(quantized):
    graph, x, expected, report = quantized
    assert {row.dtype for row in report.rows} == {"int16"}
    assert str(report).startswith("int16x8, 24 calibration samples, ranges by minmax")
    assert conversions(graph) == [("QUANTIZE", "float32", "int16"), *[("DEQUANTIZE", "int16", "float32")] * 2]
    found = [evaluate.run(graph, [image[None]]) for image in x]
    real, integer = (np.concatenate([outputs[1] for outputs in runs]) for runs in (expected, found))
    assert signal_to_noise(real, integer) > 40
    weights = [node.inputs[1] for node in graph.nodes if node.op in ("CONV_2D", "FULLY_CONNECTED")]
    assert {tensor.dtype for tensor in weights} == {INT8}
    assert all(tensor.quantization.per_channel for tensor in weights)
    biases = [node.inputs[2] for node in graph.nodes if node.op in ("CONV_2D", "FULLY_CONNECTED")]
    assert {bias.dtype for bias in biases} == {np.dtype(np.int64)}
    assert not any(n.outputs[0].quantization.zero_point.any() for n in quantized_nodes(graph))


def test_every_node_gives_the_integers_that_litert_gives(quantized):
    graph, x, _, _ = quantized
    assert_litert_equal(graph, [x[:1]])


def test_every_node_is_within_a_quantization_step_of_its_float_op(quantized):
    graph, x, _, _ = quantized
    steps = list(errors_in_steps(graph, [x[:1]]))
    assert len(steps) == len(quantized_nodes(graph)) > 15
    for node, error in steps:
        # Of two tables with lines between their entries, with 1/32768 a step.
        assert error <= (2 if node.op == "SOFTMAX" else 1.01), f"{node}: {error} steps"


def test_the_engine_runs_it_from_a_file(quantized):
    graph, x, _, _ = quantized
    model = runtime.load(schema.write(schema.Model([graph])))
    for image in x[:3]:
        found = model(image[None])
        for name, array in zip(graph.output_names, evaluate.run(graph, [image[None]]), strict=True):
            np.testing.assert_array_equal(found[name], array)


def test_integer_inputs_and_outputs(quantized):
    graph, x, _, _ = quantized
    integer = fixed_batch(network())
    quantize(integer, Options("int16x8", io_dtype="int16"), x)
    assert conversions(integer) == []
    given = integer.inputs[0]
    assert {tensor.dtype for tensor in (given, *integer.outputs)} == {INT16}
    model = runtime.load(schema.write(schema.Model([integer])))
    found = model(schema.fixedpoint.quantize(x[:1], given.quantization, INT16))
    for tensor, name, real in zip(integer.outputs, integer.output_names, evaluate.run(graph, [x[:1]]), strict=True):
        assert found[name].dtype == INT16
        np.testing.assert_array_equal(schema.fixedpoint.dequantize(found[name], tensor.quantization), real)


def chain(*layers, op="CONV_2D"):
    builder = Builder()
    y = builder.input("x", None, 8, 8, 4)
    for name in layers:
        y = builder.conv(y, 4, name=name) if op == "CONV_2D" else builder.node(op, y, name=name)
    return builder.end(y)


def test_types_change_only_where_they_meet(rng):
    graph, x = chain("a", "b", "c", "d", "e", "f"), images(rng, 16, 8, 4)
    expected = evaluate.run(graph, [x])[0]
    report = quantize(graph, Options("int8", keep_float="c", int16="[de]"), x)
    assert [row.dtype for row in report.rows] == ["int8", "int8", "float32", "int16", "int16", "int8"]
    assert [row.reason for row in report.rows] == ["", "", "keep_float names it ('c')", "", "", ""]
    assert conversions(graph) == [
        ("QUANTIZE", "float32", "int8"),
        ("DEQUANTIZE", "int8", "float32"),
        ("QUANTIZE", "float32", "int16"),
        ("QUANTIZE", "int16", "int8"),
        ("DEQUANTIZE", "int8", "float32"),
    ]
    assert signal_to_noise(expected, evaluate.run(graph, [x])[0]) > 25
    assert max(error for _, error in errors_in_steps(graph, [x])) <= 1.01
    assert_litert_equal(graph, [x[:2]])
    found = runtime.load(schema.write(schema.Model([graph])))(x)
    np.testing.assert_array_equal(found, evaluate.run(graph, [x])[0])


def test_a_tensor_has_each_form_once(rng):
    builder = Builder()
    x = builder.input("x", None, 8, 8, 4)
    y = builder.conv(x, 4, name="source")
    ends = [builder.conv(y, 4, name=name) for name in ("narrow1", "narrow2", "wide1", "wide2", "float1", "float2")]
    graph = builder.end(*ends)
    data = images(rng, 16, 8, 4)
    quantize(graph, Options("int8", keep_float="float?", int16="wide?"), data)
    assert conversions(graph)[:3] == [
        ("QUANTIZE", "float32", "int8"),
        ("QUANTIZE", "int8", "int16"),
        ("DEQUANTIZE", "int8", "float32"),
    ]
    (made, wide) = (node.outputs[0] for node in graph.nodes if node.outputs[0].name == "source:0"
                    and node.outputs[0].quantization is not None)  # fmt: skip
    assert (made.dtype, wide.dtype) == (INT8, INT16)
    # Widening loses nothing: each of the 256 numbers is there, within half a step of the finer kind.
    numbers = np.arange(-128, 128, dtype=np.int8)
    op = schema.ops.get("QUANTIZE")
    types = [schema.TensorType((256,), t.dtype, t.quantization) for t in (made, wide)]
    (widened,) = op.reference(schema.ops.attributes.DTypeAttributes(INT16), [numbers], types[:1], types[1:])
    error = schema.fixedpoint.dequantize(widened, wide.quantization) - schema.fixedpoint.dequantize(
        numbers, made.quantization
    )
    assert np.abs(error).max() <= 0.51 * wide.quantization.scale[0]


def test_cheap_nodes_between_int16_ones_follow_them(rng):
    builder = Builder()
    y = builder.conv(builder.input("x", None, 8, 8, 4), 4, name="a")
    y = builder.node("MAX_POOL_2D", y, attributes=schema.ops.attributes.Pool2DAttributes(2, 2), name="pool")
    y = builder.conv(y, 4, name="b")
    z = builder.conv(builder.node("RELU", y, name="relu"), 4, name="c")
    graph = builder.end(z)
    report = quantize(graph, Options("int8", int16="a,b"), images(rng, 16, 8, 4))
    assert {row.layer: row.dtype for row in report.rows} == {
        "a": "int16", "pool": "int16", "b": "int16", "relu": "int8", "c": "int8",
    }  # fmt: skip


def test_values_that_are_not_finite_behind_int16(rng):
    builder = Builder()
    y = builder.dense(builder.input("x", None, 6), 4, name="a")
    y = builder.dense(builder.node("RELU", y, name="relu"), 4, name="b")
    y = builder.node("MUL", builder.node("MUL", y, builder.constant(3e38)), builder.constant(3e38), name="overflow")
    graph = builder.end(y)
    with np.errstate(over="ignore", invalid="ignore"):
        report = quantize(graph, Options("int8", int16="[ab]"), rng.normal(0, 9, (40, 6)).astype(np.float32))
    assert {row.layer: row.dtype for row in report.rows}["a"] == "int16"
    assert {row.layer: row.dtype for row in report.rows}["overflow"] == "float32"


def test_what_int16_has_not_stays_float(rng):
    graph = chain("one", "two", op="HARD_SWISH")
    rows = quantize(graph, Options("int8", int16="two"), images(rng, 8, 8, 4)).rows
    assert [(row.dtype, row.reason) for row in rows] == [
        ("float32", "it stands between operations that stay float"),
        ("float32", "HARD_SWISH has no int16 form"),
    ]
    wide = chain("one", "two")
    rows = quantize(wide, Options("int16x8", keep_float="one"), images(rng, 8, 8, 4)).rows
    assert [row.dtype for row in rows] == ["float32", "int16"]


def test_a_pattern_that_matches_nothing_leaves_the_graph_as_it_was(rng):
    graph = chain("one", "two")
    before = schema.write(schema.Model([graph]))
    for options in (
        Options("int8", keep_float="tow"),
        Options("int8", int16="tow"),
        Options("float16", "minmax", None, "tow"),
    ):
        with pytest.raises(InputError, match="'tow' matches no layer; close to it are two"):
            quantize(graph, options, None if options.method == "float16" else images(rng, 8, 8, 4))
    assert schema.write(schema.Model([graph])) == before


def test_large_biases_fit(rng):
    """An int32 bias would not hold them beside such small inputs."""
    builder = Builder()
    x = builder.input("x", None, 6)
    weights, bias = builder.constant(rng.normal(0, 1e-3, (4, 6))), builder.constant([1e3, -1e3, 1e2, 0])
    graph = builder.end(builder.node("FULLY_CONNECTED", x, weights, bias))
    data = 1e-3 * rng.normal(0, 1, (64, 6)).astype(np.float32)
    expected = evaluate.run(graph, [data])[0]
    quantize(graph, Options("int16x8"), data)
    (node,) = quantized_nodes(graph)
    assert np.abs(node.inputs[2].value).max() > 2**31
    np.testing.assert_allclose(evaluate.run(graph, [data])[0], expected, atol=node.outputs[0].quantization.scale[0])


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_of_types(seed):
    """Some layers int8, some int16, some float: conversions fit, nothing is lost that the types do not lose."""
    rng = np.random.default_rng(seed)
    graph, x = fixed_batch(network()), images(rng)
    names = [node.name for node in graph.nodes]
    expected = [evaluate.run(graph, [image[None]])[1] for image in x]
    types = rng.choice(["int8", "int16", "float"], len(names), p=[0.5, 0.3, 0.2])
    chosen = {kind: [name for name, t in zip(names, types, strict=True) if t == kind] for kind in types}
    options = Options("int8", keep_float=chosen.get("float", ()), int16=chosen.get("int16", ()))
    quantize(graph, options, x)
    model = runtime.load(schema.write(schema.Model([graph])))
    found = [model(image[None])["logits"] for image in x]
    # Float layers on the engine differ in the last bits, which may round to another integer now and then.
    wanted = [evaluate.run(graph, [image[None]])[1] for image in x]
    np.testing.assert_allclose(found, wanted, atol=0.03 * np.std(expected))
    assert signal_to_noise(np.concatenate(expected), np.concatenate(found)) > 25
    for node, error in errors_in_steps(graph, [x[:1]]):
        assert error <= (2 if node.op == "SOFTMAX" else 1.01), f"{node}: {error} steps"


def test_slopes_that_are_computed(rng):
    """16x8 has int8 slopes beside int16 activations, which a computed tensor is not."""
    builder = Builder()
    x = builder.conv(builder.input("x", None, 8, 8, 4), 4, name="conv")
    graph = builder.end(builder.conv(builder.node("PRELU", x, builder.input("slopes", 4), name="prelu"), 4, name="end"))
    data = [{"x": images(rng, 8, 8, 4), "slopes": np.linspace(-1, 1, 4, dtype=np.float32)}]
    reasons = {row.layer: row.reason for row in quantize(graph, Options("int16x8"), data).rows}
    assert reasons == {"conv": "", "prelu": "its slopes are computed, not constant", "end": ""}


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_numbers_that_the_tables_cannot_scale_stay_float(rng, op):
    builder = Builder()
    scores = builder.dense(builder.input("x", None, 8), 8, name="scores")
    large = builder.node("MUL", scores, builder.constant(3e4), name="large")
    graph = builder.end(builder.dense(builder.node(op, large, name="gate"), 4, name="y"))
    data = rng.normal(0, 1, (16, 8)).astype(np.float32)
    expected = evaluate.run(graph, [data])[0]
    reasons = {row.layer: row.reason for row in quantize(graph, Options("int16x8"), data).rows}
    assert f"too large for int16 {op}" in reasons["gate"] and reasons["y"] == ""
    assert signal_to_noise(expected, evaluate.run(graph, [data])[0]) > 35

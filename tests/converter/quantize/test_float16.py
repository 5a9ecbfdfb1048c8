import numpy as np

import schema
from converter.quantize import Options, quantize
from schema import evaluate
from schema.graph import StoredConstant
from tests.support.float_graphs import Builder, clustered


def test_weights_are_stored_in_half_and_computed_as_float32(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 6, 8)
    y = builder.dense(builder.conv(x, 64), 100)
    graph = builder.end(y)
    whole = len(schema.write(schema.Model([graph])))
    data = rng.normal(0, 1, (4, 6, 6, 8)).astype(np.float32)
    expected = evaluate.run(graph, [data])[0]
    report = quantize(graph, Options("float16"))
    assert len(schema.write(schema.Model([graph]))) < 0.52 * whole
    graph = schema.read(schema.write(schema.Model([graph]))).graph
    found = evaluate.run(graph, [data])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-3 * expected.std())
    assert "4 constants stored as float16, 0 kept as float32" in str(report)


def test_what_float16_cannot_hold_stays_float32_and_is_reported(rng):
    builder = Builder()
    x = builder.input("x", None, 64)
    large = builder.constant(np.linspace(0, 7e4, 64))
    tiny = builder.constant(np.linspace(0, 1e-5, 64))
    y = builder.node("MUL", builder.node("MUL", x, large, name="large"), tiny, name="tiny")
    graph = builder.end(builder.node("ADD", y, builder.constant(np.ones(4).repeat(16)), name="ones"))
    report = quantize(graph, Options("float16"))
    assert large.constant.values.dtype == tiny.constant.values.dtype == np.float32
    rows = {row.layer: row.reason for row in report.rows}
    assert "exceed float16's 65504" in rows["large"]
    assert "below float16's normal numbers" in rows["tiny"]
    assert rows["ones"] == ""


def test_small_and_narrow_constants_are_left_alone(rng):
    builder = Builder()
    x = builder.input("x", None, 64)
    few = builder.constant(np.ones(4))
    kernel = clustered(rng.normal(0, 1, (4, 64)), 16, rng.uniform(1, 2, 4))
    integers = schema.Tensor("integers", np.float32)
    integers.set_constant(schema.Constant(np.ones((8, 4), np.int8), np.ones(8, np.float32), 0))
    y = builder.node("FULLY_CONNECTED", builder.node("FULLY_CONNECTED", x, kernel, few), integers)
    graph = builder.end(y)
    expected = kernel.value
    quantize(graph, Options("float16"))
    assert few.constant.values.dtype == np.float32
    assert integers.constant.values.dtype == np.int8
    assert kernel.constant.values.dtype == np.float16
    assert np.unique(kernel.constant.values).size == 16
    np.testing.assert_allclose(kernel.value, expected, rtol=1e-3)


def test_layers_that_keep_float(rng):
    builder = Builder()
    x = builder.input("x", None, 6, 6, 8)
    y = builder.dense(builder.conv(builder.conv(x, 64, name="block/first"), 64, name="block/last"), 100, name="logits")
    graph = builder.end(y)
    report = quantize(graph, Options("float16", keep_float="block/*"))
    assert [node.inputs[1].constant.values.dtype for node in graph.nodes] == [np.float32, np.float32, np.float16]
    reasons = {row.layer: row.reason for row in report.rows}
    assert "keep_float names it ('block/*')" in reasons["block/first"]
    assert reasons["logits"] == ""


def test_a_graph_that_was_read_from_a_file(rng):
    """Its kernel is decoded when it is asked for; it becomes a constant that is not."""
    builder = Builder()
    graph = builder.end(builder.dense(builder.input("x", None, 128), 128))
    graph.nodes[0].inputs[1] = clustered(graph.nodes[0].inputs[1].value, 16)
    read = schema.read(schema.write(schema.Model([graph]))).graph
    kernel = read.nodes[0].inputs[1]
    assert isinstance(kernel.constant, StoredConstant)
    quantize(read, Options("float16"))
    assert kernel.constant.values.dtype == np.float16
    np.testing.assert_allclose(kernel.value, graph.nodes[0].inputs[1].value, rtol=1e-3)

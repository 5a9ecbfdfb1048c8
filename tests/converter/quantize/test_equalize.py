"""Equalization: the float function stays, channels become alike, int8 gets better, and codebooks survive."""

import numpy as np
import pytest

from converter.quantize import Options, equalize, quantize
from converter.quantize.channels import paths
from converter.quantize.equalize import HEADROOM
from converter.quantize.measure import Reference
from converter.quantize.placement import place
from converter.rewriter import copy
from schema import Constant, evaluate, inference
from schema.ops.attributes import (
    AxisAttributes,
    ClampAttributes,
    Conv2DAttributes,
    Conv3DAttributes,
    FullyConnectedAttributes,
    Pool2DAttributes,
    Pool3DAttributes,
)
from tests.support.float_graphs import Builder, clustered
from tests.support.unequal_nets import images, inverted_residual


def equalized(graph, x):
    """(a copy, what was done to it)"""
    inference.annotate(graph)
    planned = equalize.plan(place(graph), [[x]])
    changed = copy(graph)
    equalize.apply(changed, planned)
    return changed, planned


def assert_same_function(graph, changed, x):
    expected = evaluate.run(graph, [x])
    for real, found in zip(expected, evaluate.run(changed, [x]), strict=True):
        assert np.abs(found - real).max() < 1e-5 * np.abs(real).max()
    assert np.abs(expected[0][0] - expected[0][1]).max() > 1e-3 * np.abs(expected[0]).max()


def ranges(graph, tensor, x):
    array = evaluate.run(graph, [x], keep=[tensor])[-1]
    return np.abs(array).reshape(-1, array.shape[-1]).max(axis=0)


def found_paths(graph):
    inference.annotate(graph)
    return [str(path) for path in paths(graph, place(graph).rules.__contains__)]


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "NONE"])
def test_a_hard_net_becomes_easy_and_stays_the_same_function(activation, rng):
    graph, x = inverted_residual(activation), images(rng, 32)
    changed, planned = equalized(graph, x)
    assert [e.name for e in planned] == [
        "stem -> depthwise",
        "depthwise -> project",
        "project -> expand",
        "expand -> scores",
    ]
    assert all(e.gain > 10 for e in planned)
    assert_same_function(graph, changed, x)
    for before, after in zip(graph.nodes[:2], changed.nodes[:2], strict=True):
        spread = []
        for net, node in ((graph, before), (changed, after)):
            found = ranges(net, node.outputs[0], x)
            spread.append(found.max() / found[found > 0].min())
        assert spread[1] < spread[0] / 30


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "NONE"])
def test_int8_gains_many_decibels(activation, rng):
    graph = inverted_residual(activation)
    inference.annotate(graph)
    x, others = images(rng, 64), images(rng, 64)
    reference, snr = Reference(graph, [[others]]), {}
    for on in (False, True):
        quantized = copy(graph)
        report = quantize(quantized, Options("int8", equalize=on), x)
        snr[on] = reference.noise(quantized).snr
    assert snr[False] < 8
    assert snr[True] > 25
    (note,) = report.notes
    assert "kept for 4 of 4: stem -> depthwise, depthwise -> project" in note


def test_relu6_is_not_cut_off_sooner(rng):
    graph, x = inverted_residual("RELU6", 30.0), images(rng, 32)
    stem = graph.nodes[0]
    stem.inputs[1].set_constant(Constant(4 * stem.inputs[1].value))
    assert (ranges(graph, stem.outputs[0], x) == 6).any()
    changed, (first, *_) = equalized(graph, x)
    assert_same_function(graph, changed, x)
    assert (first.factors <= 1).all()
    largest = ranges(graph, stem.outputs[0], x)
    assert (6 * first.factors >= np.minimum(HEADROOM * largest, 6) * (1 - 1e-6)).all()


def chain(rng, *between, writer="conv", reader="conv", activation="NONE"):
    """A net of a writer, what `between` adds behind it, and a reader."""
    builder = Builder()
    x = builder.input("image", None, 8, 8, 3)
    y = builder.conv(x, 6, name="writer", activation=activation)
    if writer == "depthwise":
        y = builder.depthwise(y, 2, name="depthwise", activation=activation)
    for add in between:
        y = add(builder, y)
    y = getattr(builder, reader)(y, 4, name="reader")
    return builder.end(y)


def spread_out(graph, names=("writer",)):
    for node in graph.nodes:
        if node.name in names:
            channels = node.inputs[1].shape[0]
            factors = np.logspace(0, -3, channels, dtype=np.float32)
            node.inputs[1].set_constant(Constant(node.inputs[1].value * factors.reshape(-1, 1, 1, 1)))
            node.inputs[2].set_constant(Constant(node.inputs[2].value * factors))


PASSES = {
    "relu": [lambda b, y: b.node("RELU", y)],
    "leaky and abs": [lambda b, y: b.node("LEAKY_RELU", y), lambda b, y: b.node("ABS", y)],
    "prelu": [lambda b, y: b.node("PRELU", y, b.constant(b.rng.uniform(0, 1, (1, 1, 6))))],
    "max pool": [lambda b, y: b.node("MAX_POOL_2D", y, attributes=Pool2DAttributes(2, 2, 2, 2))],
    "average": [lambda b, y: b.node("AVERAGE_POOL_2D", y, attributes=Pool2DAttributes(3, 3, 1, 1, "SAME"))],
    "pad": [lambda b, y: b.node("PAD", y, b.constant([[0, 0], [1, 0], [0, 2], [0, 0]], np.int32))],
    "resize": [lambda b, y: b.node("RESIZE_BILINEAR", y, b.constant([16, 16], np.int32))],
    "clamp": [lambda b, y: b.node("CLAMP", y, attributes=ClampAttributes(0, 2))],
}


@pytest.mark.parametrize("name", PASSES)
def test_factors_pass(name, rng):
    graph, x = chain(rng, *PASSES[name]), images(rng, 16, 8)
    spread_out(graph)
    assert found_paths(graph) == ["writer -> reader"]
    changed, planned = equalized(graph, x)
    assert len(planned) == 1
    assert_same_function(graph, changed, x)


def flatten(builder, y):
    return builder.node("RESHAPE", y, builder.constant([-1, y.shape[1] * y.shape[2] * y.shape[3]], np.int32))


def mean(builder, y):
    return builder.node("MEAN", y, builder.constant([1, -2], np.int32))


@pytest.mark.parametrize("between", [[flatten], [mean], [PASSES["max pool"][0], flatten]])
def test_factors_pass_into_dense_layers(between, rng):
    graph, x = chain(rng, *between, reader="dense"), images(rng, 16, 8)
    spread_out(graph)
    changed, planned = equalized(graph, x)
    assert [e.name for e in planned] == ["writer -> reader"]
    assert_same_function(graph, changed, x)


@pytest.mark.parametrize("shape", [(6, 3, 3, 2), (6, 1, 1, 6), (2, 3, 3, 3)])
def test_grouped_readers(shape, rng):
    def grouped(builder, y):
        weights, bias = builder.constant(rng.normal(0, 1, shape)), builder.constant(np.zeros(shape[0]))
        return builder.node("CONV_2D", y, weights, bias, name="grouped")

    graph, x = chain(rng, grouped, activation="RELU"), images(rng, 16, 8)
    spread_out(graph)
    changed, planned = equalized(graph, x)
    assert planned[0].name == "writer -> grouped"
    assert_same_function(graph, changed, x)


def test_transposed_convolutions_read_and_write(rng):
    def transposed(builder, y, channels, size, name):
        weights = builder.constant(rng.normal(0, 0.3, (channels, 3, 3, y.shape[3])))
        bias = builder.constant(np.zeros(channels))
        attributes = Conv2DAttributes(stride_h=2, stride_w=2, padding="SAME", activation="RELU")
        shape = builder.constant([16, size, size, channels], np.int32)
        return builder.node("TRANSPOSE_CONV", shape, weights, y, bias, attributes=attributes, name=name)

    builder = Builder()
    y = builder.conv(builder.input("image", 16, 8, 8, 3), 6, name="writer", activation="RELU")
    y = transposed(builder, transposed(builder, y, 5, 16, "up"), 4, 32, "upper")
    graph, x = builder.end(builder.conv(y, 2, name="last")), images(rng, 16, 8)
    spread_out(graph)
    up, upper = (node for node in graph.nodes if node.name.startswith("up"))
    factors = np.logspace(0, -3, 5, dtype=np.float32)
    up.inputs[1].set_constant(Constant(up.inputs[1].value * factors.reshape(-1, 1, 1, 1)))
    upper.inputs[1].set_constant(Constant(upper.inputs[1].value / factors))
    assert found_paths(graph) == ["writer -> up", "up -> upper", "upper -> last"]
    changed, planned = equalized(graph, x)
    assert next(e for e in planned if e.name == "up -> upper").gain > 10
    assert_same_function(graph, changed, x)


def test_convolutions_of_volumes_read_and_write(rng):
    def add(builder, y, channels, name, *shape):
        """Transposed where a shape is given."""
        kernel, attributes = (2, 3, 3), Conv3DAttributes(padding="SAME")
        weights = rng.normal(0, 0.2, (*kernel, channels, y.shape[4]) if shape else (*kernel, y.shape[4], channels))
        kernel, bias = builder.constant(weights), builder.constant(np.zeros(channels))
        if not shape:
            return builder.node("CONV_3D", y, kernel, bias, attributes=attributes, name=name)
        size = builder.constant([*shape, channels], np.int32)
        return builder.node("CONV_3D_TRANSPOSE", size, kernel, y, bias, attributes=attributes, name=name)

    builder = Builder()
    y = add(builder, builder.input("video", 16, 4, 6, 6, 3), 6, "first")
    y = builder.node("MAX_POOL_3D", y, attributes=Pool3DAttributes(2, 2, 2, 2, 2, 2))
    y = builder.node("AVERAGE_POOL_3D", add(builder, y, 5, "second"), attributes=Pool3DAttributes(1, 3, 3))
    y = add(builder, y, 4, "third", 16, 2, 1, 1)
    graph = builder.end(add(builder, y, 2, "last"))
    layers = {node.name: node for node in graph.nodes if node.name in ("first", "second", "third", "last")}
    for writer, reader, out_axis, in_axis in (
        ("first", "second", 4, 3),
        ("second", "third", 4, 4),
        ("third", "last", 3, 3),
    ):
        kernel, read = (layers[name].inputs[1] for name in (writer, reader))
        factors = np.logspace(0, -3, kernel.shape[out_axis], dtype=np.float32)
        along = [-1 if axis == out_axis else 1 for axis in range(5)]
        kernel.set_constant(Constant(kernel.value * factors.reshape(along)))
        along = [-1 if axis == in_axis else 1 for axis in range(5)]
        read.set_constant(Constant(read.value / factors.reshape(along)))
    x = rng.normal(0, 1, (16, 4, 6, 6, 3)).astype(np.float32)
    changed, planned = equalized(graph, x)
    assert [e.name for e in planned] == ["first -> second", "second -> third", "third -> last"]
    assert all(e.gain > 10 for e in planned), planned
    assert_same_function(graph, changed, x)


def test_depthwise_with_a_multiplier_reads_and_writes(rng):
    graph, x = chain(rng, writer="depthwise", activation="RELU"), images(rng, 16, 8)
    spread_out(graph)
    assert found_paths(graph) == ["writer -> depthwise", "depthwise -> reader"]
    changed, planned = equalized(graph, x)
    assert planned[0].gain > 3
    assert_same_function(graph, changed, x)


@pytest.mark.parametrize("reader", ["conv", "depthwise"])
def test_small_channels_are_stretched_where_they_matter(reader, rng):
    """They do where what reads them has large weights, itself or, behind a depthwise layer, the one after it."""
    smallest = {}
    for matter in (False, True):
        between = [lambda b, y: b.depthwise(y, name="depthwise", activation="RELU")] if reader == "depthwise" else []
        graph, x = chain(rng, *between, activation="RELU"), images(rng, 16, 8)
        spread_out(graph)
        if matter:
            last = graph.nodes[-1].inputs[1]
            last.set_constant(Constant(last.value / np.logspace(0, -3, 6, dtype=np.float32)))
        _, (first, *_) = equalized(graph, x)
        smallest[matter] = first.factors.min()
    assert smallest[False] > 0.03
    assert smallest[True] < 0.005


def test_several_readers_share_the_factors(rng):
    builder = Builder()
    x = builder.input("image", None, 8, 8, 3)
    y = builder.conv(x, 6, name="writer", activation="RELU")
    left, right = builder.conv(y, 4, 1, name="left"), builder.conv(y, 5, name="right")
    graph = builder.end(builder.node("CONCATENATION", left, right, attributes=AxisAttributes(3)))
    spread_out(graph)
    data = images(rng, 16, 8)
    changed, planned = equalized(graph, data)
    assert [e.name for e in planned] == ["writer -> left, right"]
    assert_same_function(graph, changed, data)


@pytest.mark.parametrize(
    "between",
    [
        [lambda b, y: b.node("LOGISTIC", y)],
        [lambda b, y: b.node("ADD", y, b.constant(1.0))],
        [lambda b, y: b.node("RELU_N1_TO_1", y)],
        [lambda b, y: b.node("MEAN", y, b.constant([3], np.int32)), lambda b, y: b.node("EXPAND_DIMS", y, b.constant(3, np.int32))],  # noqa: E501
        [lambda b, y: b.node("PAD", y, b.constant([[0, 0], [0, 0], [0, 0], [0, 6]], np.int32))],
        [lambda b, y: b.node("AVERAGE_POOL_2D", y, attributes=Pool2DAttributes(2, 2, activation="RELU6"))],
        [lambda b, y: b.node("MUL", y, y)],
    ],
)  # fmt: skip
def test_factors_do_not_pass(between, rng):
    assert found_paths(chain(rng, *between)) == []


def test_outputs_and_layers_that_stay_float_are_left_alone(rng):
    graph = chain(rng, activation="RELU")
    inference.annotate(graph)
    assert list(paths(graph, lambda node: node.name != "reader")) == []
    graph.outputs.append(graph.nodes[0].outputs[0])
    assert found_paths(graph) == []


def test_shared_kernels_are_left_alone(rng):
    builder = Builder()
    x = builder.input("x", None, 6)
    y = builder.dense(x, 6, name="one")
    kernel = builder.graph.nodes[0].inputs[1]
    y = builder.node("FULLY_CONNECTED", y, kernel, attributes=FullyConnectedAttributes(), name="two")
    assert found_paths(builder.end(builder.dense(y, 3))) == []


def test_codebooks_and_zeros_survive(rng):
    """Output channels are scaled by the channels' own factors; input channels of a codebook are not scaled."""
    builder = Builder()
    x = builder.input("image", None, 8, 8, 3)
    y = builder.conv(x, 16, name="first", activation="RELU")
    y = builder.depthwise(y, name="depthwise", activation="RELU")
    y = builder.conv(y, 16, name="second", activation="RELU")
    graph = builder.end(builder.conv(y, 4, name="last"))
    first, depthwise, second, last = (node.inputs[1] for node in graph.nodes)
    factors = np.logspace(0, -3, 16, dtype=np.float32)
    for tensor, axis in ((first, 0), (depthwise, 3), (second, 0)):
        kernel = clustered(np.where(rng.random(tensor.shape) < 0.5, 0, tensor.value), 15)
        tensor.set_constant(Constant(kernel.value, factors, axis))
    for node in graph.nodes[:3]:
        node.inputs[2].set_constant(Constant(node.inputs[2].value * factors))
    zeros = rng.random(last.shape) < 0.5
    last.set_constant(Constant(np.where(zeros, 0, last.value)))
    data = images(rng, 32, 8)
    changed, planned = equalized(graph, data)
    assert [e.name for e in planned] == ["first -> depthwise", "second -> last"]
    assert_same_function(graph, changed, data)
    for node, before in zip(changed.nodes[:3], (first, depthwise, second), strict=True):
        after = node.inputs[1].constant
        np.testing.assert_array_equal(after.values, before.constant.values)
    np.testing.assert_array_equal(changed.nodes[3].inputs[1].value == 0, zeros | (last.value == 0))
    report = quantize(copy(changed), Options("int8"), data)
    assert [row.clusters for row in report.rows] == [
        *(np.unique(t.constant.values).size for t in (first, depthwise, second)),
        None,
    ]


def test_a_plan_changes_nothing_by_itself(rng):
    graph, x = inverted_residual(), images(rng, 8)
    before = [list(node.inputs) for node in graph.nodes]
    equalized(graph, x)
    assert [node.inputs for node in graph.nodes] == before

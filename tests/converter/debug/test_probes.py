"""Taps of a float graph beside its int8 form, against the references."""

import numpy as np

from converter.debug.probes import in_parts, isolated, probe
from converter.quantize import Options, quantize
from converter.quantize.matching import matched
from converter.rewriter import copy
from schema import Graph, evaluate, inference
from schema.fixedpoint import dequantize
from schema.fixedpoint import quantize as to_integers
from schema.ops.attributes import AxisAttributes, DTypeAttributes
from tests.support.float_graphs import Builder


def network():
    """Branches that concatenation requantizes, an op that stays float, shape arithmetic, a MOVE without own error."""
    builder = Builder()
    x = builder.input("image", None, 6, 6, 3)
    small = builder.conv(x, 4, name="small", activation="RELU6")
    large = builder.node("MUL", builder.conv(x, 4, name="wide"), builder.constant(20.0), name="large")
    joined = builder.node("CONCATENATION", small, large, attributes=AxisAttributes(3), name="join")
    y = builder.conv(joined, 4, name="head", activation="RELU")
    y = builder.node("LOG1P", y, name="log")
    shape = builder.node("SHAPE", y, attributes=DTypeAttributes(np.dtype(np.int32)), name="shape")
    y = builder.node("RESHAPE", builder.conv(y, 4, name="last"), shape, name="move")
    return builder.end(y, builder.conv(small, 2, name="side"))


def both(rng):
    real = network()
    inference.annotate(real)
    x = rng.normal(0, 1, (8, 6, 6, 3)).astype(np.float32)
    quantized = copy(real)
    quantize(quantized, Options("int8"), x)
    return real, quantized, x


def values(graph, x):
    tensors = [t for t in graph.tensors() if not t.is_constant]
    return dict(zip(tensors, evaluate.run(graph, [x], keep=tensors)[len(graph.outputs) :], strict=True))


def as_float(tensor, array):
    return array if tensor.quantization is None else dequantize(array, tensor.quantization)


def test_every_node_has_its_twin(rng):
    real, quantized, _ = both(rng)
    pairs = list(matched(real, quantized))
    assert [a for a, _ in pairs] == real.nodes
    assert [(a.op, a.name) for a, _ in pairs] == [(b.op, b.name) for _, b in pairs]
    assert [n.op for n in quantized.nodes].count(
        "QUANTIZE"
    ) == 3  # the input, into the concatenation, behind the logarithm


def test_taps_hold_what_each_graph_computes(rng):
    real, quantized, x = both(rng)
    probed = probe(real, quantized)
    found, expected, integers = values(probed.graph, x), values(real, x), values(quantized, x)
    assert probed.graph.outputs == list(dict.fromkeys(t for tap in probed.taps for t in tap.tensors))
    names = [tap.layer for tap in probed.taps]
    assert names == ["image", "small", "wide", "large", "join", "head", "log", "last", "move", "side"]
    twins = {a.name: (a, b) for a, b in matched(real, quantized)}
    for tap in probed.taps[1:]:
        node, twin = twins[tap.layer]
        np.testing.assert_array_equal(found[tap.real[0]], expected[node.outputs[0]])
        accumulated = as_float(twin.outputs[0], integers[twin.outputs[0]])
        np.testing.assert_array_equal(found[tap.accumulated[0]], accumulated)
        if tap.layer == "log":
            assert (tap.own, tap.dtype, tap.step) == ((), None, None)
            continue
        given = [
            None if t is None
            else t.value if t.is_constant
            else expected[s] if t.quantization is None
            else to_integers(expected[s], t.quantization, t.dtype)
            for s, t in zip(node.inputs, twin.inputs, strict=True)
        ]  # fmt: skip
        own = as_float(twin.outputs[0], evaluate.run_node(twin, given)[0])
        np.testing.assert_array_equal(found[tap.own[0]], own)
        assert (tap.dtype, tap.step) == (np.int8, twin.outputs[0].quantization.scale[0])
    assert [tap.layer for tap in probed.taps if tap.moves] == ["join", "move"]
    image = probed.taps[0]
    step = image.step
    assert 0.4 * step < np.abs(found[image.own[0]] - x).max() < 0.6 * step or np.abs(x).max() > 127 * step


def test_isolated_layer(rng):
    real, quantized, x = both(rng)
    expected = values(real, x)
    found = values(isolated(real, quantized, "head"), x)
    node, twin = next(pair for pair in matched(real, quantized) if pair[0].name == "head")
    given = to_integers(expected[node.inputs[0]], twin.inputs[0].quantization, np.int8)
    own = evaluate.run_node(twin, [given, *(t.value for t in twin.inputs[1:])])[0]
    np.testing.assert_array_equal(found[node.outputs[0]], as_float(twin.outputs[0], own))
    assert not np.array_equal(found[real.outputs[0]], expected[real.outputs[0]])
    np.testing.assert_array_equal(found[real.outputs[1]], expected[real.outputs[1]])
    for array, unchanged in zip(
        evaluate.run(isolated(real, quantized, "log"), [x]), evaluate.run(real, [x]), strict=True
    ):
        np.testing.assert_array_equal(array, unchanged)


def test_a_copy_is_independent(rng):
    real = network()
    before = [(n.op, list(n.inputs)) for n in real.nodes]
    twin = copy(real)
    twin.nodes[0].inputs[0] = None
    twin.outputs.pop()
    assert [(n.op, list(n.inputs)) for n in real.nodes] == before
    assert len(real.outputs) == 2
    assert isinstance(twin, Graph)


def test_parts_stay_below_the_limit(rng):
    real, quantized, _ = both(rng)
    probed = probe(real, quantized)
    size = dict.fromkeys(probed.graph.outputs, 10)
    parts = list(in_parts(probed.taps, size, 60))
    assert [tap for part in parts for tap in part] == probed.taps
    assert len(parts) > 3
    assert all(len(part) == 1 or sum(10 * len(tap.tensors) for tap in part) <= 60 for part in parts)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter.linear import LINEAR
from converter.passes import manager, remove_dead_channels
from schema import evaluate
from schema.graph import Constant, Tensor
from schema.inference import annotate
from tests.converter.passes.building import Building, compare, draw, names, rewritten
from tests.converter.passes.random_graphs import assert_computes_the_same, random_graph


def conv(b, x, out, kernel=3, dead=(), bias=True, layer="conv", unread=(), **attributes):
    """CONV_2D whose channels `dead` have zeros for weights, and which has zeros for the channels `unread` of x."""
    weights = b.rng.normal(size=(out, kernel, kernel, x.shape[-1])).astype(np.float32)
    weights[list(dead)] = 0
    weights[..., list(unread)] = 0
    offsets = [b.constant(b.rng.normal(size=out))] if bias else []
    return b("CONV_2D", x, b.constant(weights), *offsets, layer=layer, **attributes)


def dense(b, x, out, layer="dense"):
    return b("FULLY_CONNECTED", x, b.normal(out, x.shape[-1]), b.normal(out), layer=layer)


def weights_of(graph, layer):
    (node,) = [node for node in graph.nodes if node.name == layer]
    return next(t.shape for t in node.inputs if t is not None and t.is_constant and len(t.shape) > 1)


DEAD = (1, 4)
GONE = ["first: 2 of 6 channels removed"]
BETWEEN = {
    "nothing": lambda b, x: x,
    "activation": lambda b, x: b("LOGISTIC", x),
    "clamp": lambda b, x: b("CLAMP", x, min=-0.3, max=0.4),
    "factor and addend": lambda b, x: b("ADD", b("MUL", x, b.normal(6)), b.normal(1, 1, 1, 6)),
    "number": lambda b, x: b("MAXIMUM", b("SUB", b.constant(1.0), x), b.constant(0.1)),
    "slopes": lambda b, x: b("PRELU", x, b.normal(6)),
    "cropping": lambda b, x: b(
        "STRIDED_SLICE",
        x,
        b.integers(0, 1, 1, 0),
        b.integers(0, 5, 5, 6),
        b.integers(1, 1, 1, 1),
        begin_mask=9,
        end_mask=1,
    ),
    "repetition": lambda b, x: b("TILE", x, b.integers(1, 2, 1, 1)),
    "other samples": lambda b, x: b("RESHAPE", x, b.integers(-1, 3, 6, 6)),
    "maximum": lambda b, x: b("MAX_POOL_2D", x, filter_h=2, filter_w=2, stride_h=2, stride_w=2, padding="SAME"),
    "average": lambda b, x: b("AVERAGE_POOL_2D", x, filter_h=3, filter_w=3, padding="SAME"),
    "resizing": lambda b, x: b("RESIZE_NEAREST_NEIGHBOR", x, b.integers(12, 12)),
    "transpose": lambda b, x: b("TRANSPOSE", x, b.integers(0, 2, 1, 3)),
    "depthwise": lambda b, x: b("DEPTHWISE_CONV_2D", x, b.normal(1, 3, 3, 6), b.normal(6), activation="RELU6"),
    "depthwise with multiplier": lambda b, x: b("DEPTHWISE_CONV_2D", x, b.normal(1, 3, 3, 12), b.normal(12)),
    "concatenation": lambda b, x: b("CONCATENATION", x, x, conv(b, b.graph.inputs[0], 3, layer="other"), axis=3),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_constants_go_into_the_bias_of_the_reader(between):
    b = Building()
    x = BETWEEN[between](b, conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first", activation="RELU"))
    graph = b.end(conv(b, x, 5, layer="second", bias=False))
    annotate(graph)
    before = weights_of(graph, "second")[3]
    assert rewritten(graph, remove_dead_channels.run) == GONE
    assert weights_of(graph, "first") == (4, 3, 3, 3)
    assert weights_of(graph, "second")[3] == before - (4 if before > 6 else 2)
    assert remove_dead_channels.run(graph) == []


@pytest.mark.parametrize("between", BETWEEN)
def test_channels_that_nobody_reads_go(between):
    b = Building()
    x = BETWEEN[between](b, conv(b, b.x(None, 8, 8, 3), 6, layer="first", activation="RELU"))
    times = x.shape[-1] // 6
    unread = [c * times + k for c in DEAD for k in range(times)]
    if between == "concatenation":
        unread = [c + 6 * k for c in DEAD for k in range(2)]
    graph = b.end(conv(b, x, 5, layer="second", unread=unread, padding="SAME"))
    assert rewritten(graph, remove_dead_channels.run) == GONE
    assert weights_of(graph, "first") == (4, 3, 3, 3)


@pytest.mark.parametrize("keep_dims", [False, True])
def test_global_average_and_fully_connected(keep_dims):
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first", activation="RELU")
    x = b("MEAN", x, b.integers(1, 2), keep_dims=keep_dims)
    graph = b.end(dense(b, x, 4))
    assert rewritten(graph, remove_dead_channels.run) == GONE
    assert weights_of(graph, "dense") == (4, 4)


@pytest.mark.parametrize("shape", [(-1, 216), (-1, 36, 6)])
def test_flattened_and_reshaped(shape):
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first", activation="RELU")
    x = b("RESHAPE", x, b.integers(*shape))
    graph = b.end(dense(b, x, 4))
    assert rewritten(graph, remove_dead_channels.run) == GONE
    assert weights_of(graph, "dense") == (4, shape[-1] * 4 // 6)


def test_dense_layers_before_images():
    b = Building()
    weights = b.rng.normal(size=(4 * 4 * 6, 5)).astype(np.float32).reshape(16, 6, 5)
    weights[:, list(DEAD)] = 0
    x = b("FULLY_CONNECTED", b.x(None, 5), b.constant(weights.reshape(96, 5)), layer="first")
    x = b("RESHAPE", x, b.integers(-1, 4, 4, 6))
    graph = b.end(conv(b, x, 3, layer="second", padding="SAME"))
    assert rewritten(graph, remove_dead_channels.run) == ["first: 32 of 96 channels removed"]
    assert weights_of(graph, "second") == (3, 3, 3, 4)


def test_slopes_of_each_place():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, bias=False, layer="first")
    x = b("PRELU", x, b.normal(6, 6, 6))
    graph = b.end(conv(b, x, 2, layer="second", padding="SAME"))
    assert rewritten(graph, remove_dead_channels.run) == GONE


def test_layers_over_another_axis_than_the_one_that_is_followed():
    """As in MLP-Mixer: dense layers over positions, the channels being elsewhere."""
    b = Building()
    x = b("FULLY_CONNECTED", b.x(None, 9, 4), b.normal(6, 4), layer="channels", keep_num_dims=True)
    x = b("TRANSPOSE", x, b.integers(0, 2, 1))
    weights = b.rng.normal(size=(7, 9)).astype(np.float32)
    weights[list(DEAD)] = 0
    x = b("FULLY_CONNECTED", x, b.constant(weights), b.normal(7), layer="first", activation="RELU", keep_num_dims=True)
    x = b("FULLY_CONNECTED", x, b.normal(9, 7), layer="second", keep_num_dims=True)
    graph = b.end(b("TRANSPOSE", x, b.integers(0, 2, 1)))
    assert rewritten(graph, remove_dead_channels.run) == ["first: 2 of 7 channels removed"]
    assert weights_of(graph, "channels") == (6, 4)
    assert weights_of(graph, "second") == (9, 5)


def test_reversed_channels_stay():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first")
    x = b(
        "STRIDED_SLICE",
        x,
        *(b.integers(0, 0, 0, v) for v in (-1, -7)),
        b.integers(1, 1, 1, -1),
        begin_mask=7,
        end_mask=7,
    )
    graph = b.end(conv(b, x, 2, layer="second"))
    assert rewritten(graph, remove_dead_channels.run) == []


def test_additions_lose_what_is_dead_on_both_sides():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=(0, 1, 2), layer="a", padding="SAME")
    y = conv(b, x, 6, dead=(1, 2, 3), layer="b", padding="SAME", bias=False, activation="RELU")
    graph = b.end(conv(b, b("ADD", x, y), 2, layer="c"))
    assert sorted(rewritten(graph, remove_dead_channels.run, 1e-5)) in (
        ["a: 2 of 6 channels removed", "b: 2 of 6 channels removed"],
        [],
    )


def test_additions_of_zeros():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=(0, 1, 2), bias=False, layer="a", padding="SAME")
    y = conv(b, x, 6, dead=(1, 2, 3), layer="b", padding="SAME", bias=False, activation="RELU")
    graph = b.end(conv(b, b("ADD", x, y), 2, layer="c"))
    assert rewritten(graph, remove_dead_channels.run) == ["a: 2 of 6 channels removed", "b: 2 of 6 channels removed"]
    assert weights_of(graph, "b") == (4, 3, 3, 4)


@pytest.mark.parametrize("op", ["TRANSPOSE_CONV", "CONV_3D"])
def test_other_linear_ops(op):
    b = Building()
    if op == "CONV_3D":
        weights = b.rng.normal(size=(2, 2, 2, 3, 6)).astype(np.float32)
        weights[..., list(DEAD)] = 0
        x = b("CONV_3D", b.x(None, 4, 4, 4, 3), b.constant(weights), layer="first")
        graph = b.end(b("CONV_3D", x, b.normal(2, 2, 2, 6, 2), layer="second"))
    else:
        weights = b.rng.normal(size=(6, 3, 3, 3)).astype(np.float32)
        weights[list(DEAD)] = 0
        shape = b.integers(1, 16, 16, 6)
        x = b(
            "TRANSPOSE_CONV",
            shape,
            b.constant(weights),
            b.x(1, 8, 8, 3),
            layer="first",
            stride_h=2,
            stride_w=2,
            padding="SAME",
        )
        graph = b.end(conv(b, x, 2, layer="second"))
    annotate(graph)
    cases = draw(graph, np.random.default_rng(1), 1)
    before = evaluate.run(graph, cases)
    assert remove_dead_channels.run(graph) == GONE
    annotate(graph)
    compare(evaluate.run(graph, cases), before, 2e-6)


def test_transposed_convolutions_of_any_batch():
    """As Keras says their size: the batch of the input, and numbers. Two of them share it."""
    b = Building()
    first = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, bias=False, layer="first", activation="RELU")
    shape = b("PACK", b.batch_of(b.graph.inputs[0]), b.index(13), b.index(13), b.index(6), axis=0)
    window = {"stride_h": 2, "stride_w": 2, "padding": "VALID"}
    weights = b.rng.normal(size=(6, 3, 3, 6)).astype(np.float32)
    weights[list(DEAD)] = 0
    up = b("TRANSPOSE_CONV", shape, b.constant(weights), first, layer="up", **window)
    other = b("TRANSPOSE_CONV", shape, b.normal(6, 3, 3, 6), first, layer="other", **window)
    graph = b.end(conv(b, up, 2, layer="second"), conv(b, other, 2, layer="third"))
    assert rewritten(graph, remove_dead_channels.run) == [*GONE, "up: 2 of 6 channels removed"]
    assert weights_of(graph, "up") == (4, 3, 3, 4)
    assert weights_of(graph, "other") == (6, 3, 3, 4)
    assert weights_of(graph, "second") == (2, 3, 3, 4)
    assert remove_dead_channels.run(graph) == []


def test_transposed_convolutions_whose_channels_nobody_knows():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first")
    up = b("TRANSPOSE_CONV", b.x(4, dtype=np.int32), b.normal(5, 3, 3, 6), x, layer="up", padding="SAME")
    graph = b.end(up)
    assert remove_dead_channels.run(graph) == []


def test_stored_codebooks_and_factors_stay():
    b = Building()
    stored = b.rng.integers(-3, 4, (6, 3, 3, 3)).astype(np.int8)
    stored[list(DEAD)] = 0
    scale = b.rng.uniform(0.1, 1, 6).astype(np.float32)
    weights = Tensor("w", np.dtype(np.float32), stored.shape, None, Constant(stored, scale, 0))
    x = b("CONV_2D", b.x(None, 8, 8, 3), weights, layer="first")
    graph = b.end(conv(b, x, 2, layer="second"))
    assert rewritten(graph, remove_dead_channels.run) == GONE
    left = graph.nodes[0].inputs[1].constant
    assert left.values.dtype == np.int8
    np.testing.assert_array_equal(left.channel_scale, np.delete(scale, DEAD))


def test_a_constant_of_two_readers_stays_one():
    b = Building()
    shared = b.normal(6, 3, 3, 3)
    first = b.x(None, 8, 8, 3)
    x, y = (b("CONV_2D", first, shared, layer=name) for name in ("a", "b"))
    graph = b.end(conv(b, x, 2, layer="c", unread=DEAD), conv(b, y, 2, layer="d", unread=DEAD))
    rewritten(graph, remove_dead_channels.run)
    a, other = (node for node in graph.nodes if node.name in ("a", "b"))
    assert a.inputs[1] is other.inputs[1]
    assert a.inputs[1].shape == (4, 3, 3, 3)


def test_near_misses():
    b = Building()
    x = b.x(None, 8, 8, 3)
    padded = conv(b, conv(b, x, 6, dead=DEAD, layer="a"), 2, padding="SAME")  # the border sees less of a constant
    out = conv(b, x, 6, dead=DEAD, layer="b")  # an output
    soft = conv(b, b("SOFTMAX", conv(b, x, 6, dead=DEAD, bias=False, layer="c")), 2)
    normal = b("SUM", conv(b, x, 6, dead=DEAD, bias=False, layer="d"), b.integers(3))
    graph = b.end(padded, out, soft, normal)
    assert rewritten(graph, remove_dead_channels.run) == []


def test_a_layer_keeps_one_channel():
    b = Building()
    graph = b.end(conv(b, conv(b, b.x(None, 8, 8, 3), 6, dead=range(6), layer="first"), 2, layer="second"))
    assert rewritten(graph, remove_dead_channels.run) == ["first: 5 of 6 channels removed"]


def test_it_runs_before_quantization_and_is_reported():
    b = Building()
    x = conv(b, b.x(None, 8, 8, 3), 6, dead=DEAD, layer="first", activation="RELU")
    graph = b.end(conv(b, x, 5, layer="second"))
    explanation = manager.optimize(graph)
    assert explanation.of("remove_dead_channels") == GONE
    assert "2 of 6 channels removed" in str(explanation)
    assert names(graph) == ["CONV_2D", "CONV_2D"]


@given(seed=st.integers(0, 1 << 30), steps=st.integers(4, 12))
def test_random_graphs_compute_the_same(seed, steps):
    """Where two fifths of all rows and columns are zero."""
    graph = random_graph(seed, steps)
    rng = np.random.default_rng(seed)
    for node in graph.nodes:
        if node.op in LINEAR:
            operands = LINEAR[node.op]
            weights = node.inputs[operands.weights]
            values = np.array(weights.value)
            for axis in (operands.out_axis, operands.in_axis):
                if axis is not None:
                    np.moveaxis(values, axis, 0)[rng.random(values.shape[axis]) < 0.4] = 0
            weights.set_constant(Constant(values))
    assert_computes_the_same(graph, rng, remove_dead_channels.run)

import numpy as np
import pytest

from converter.passes import fold_batch_norm
from schema.graph import Constant, Tensor
from tests.converter.passes.building import Building, names, rewritten, stored

KERNELS = {
    "CONV_2D": (4, 3, 2, 3),
    "CONV_2D, groups": (4, 3, 3, 1),
    "DEPTHWISE_CONV_2D": (1, 3, 3, 3),
    "DEPTHWISE_CONV_2D, multiplier 2": (1, 3, 3, 6),
    "FULLY_CONNECTED": (4, 3),
    "TRANSPOSE_CONV": (4, 2, 2, 3),
    "CONV_3D": (2, 2, 2, 3, 4),
    "CONV_3D_TRANSPOSE": (2, 2, 2, 4, 3),
}
CHANNELS = {"DEPTHWISE_CONV_2D": 3, "DEPTHWISE_CONV_2D, multiplier 2": 6, "CONV_2D, groups": 6}
WEIGHTS_AXIS = {"DEPTHWISE_CONV_2D": 3, "CONV_3D": 4, "CONV_3D_TRANSPOSE": 3}


def linear(b: Building, case, bias=True, weights=None):
    """One linear layer called "layer" with 4 output channels, or as many as CHANNELS says."""
    op, channels = case.split(",")[0], CHANNELS.get(case, 4)
    shape = (6, 3, 3, 1) if case == "CONV_2D, groups" else KERNELS[case]
    weights = b.normal(*shape) if weights is None else weights
    rest = [weights, b.normal(channels)] if bias else [weights]
    x = b.x(None, *{"FULLY_CONNECTED": (3,)}.get(op, (5, 5, 5, 3) if "3D" in op else (6, 5, 3)))
    if op == "TRANSPOSE_CONV":
        shape = b("PACK", b.batch_of(x), b.index(12), b.index(10), b.index(channels), axis=0)
        return b(op, shape, weights, x, *rest[1:], stride_h=2, stride_w=2, padding="SAME", layer="layer")
    if op == "CONV_3D_TRANSPOSE":
        shape = b("PACK", b.batch_of(x), *(b.index(n) for n in (10, 10, 10, channels)), axis=0)
        strides = {"stride_d": 2, "stride_h": 2, "stride_w": 2}
        return b(op, shape, weights, x, *rest[1:], **strides, padding="SAME", layer="layer")
    attributes = {} if op == "FULLY_CONNECTED" else {"padding": "SAME"}
    return b(op, x, *rest, **attributes, layer="layer")


def batch_norm(b: Building, y, layer="bn"):
    channels = y.shape[-1]
    return b("ADD", b("MUL", y, b.normal(channels), layer=layer), b.normal(channels), layer=layer)


@pytest.mark.parametrize("case", KERNELS)
@pytest.mark.parametrize("bias", [True, False])
def test_into_every_linear_op(case, bias):
    b = Building()
    graph = b.end(batch_norm(b, linear(b, case, bias)))
    count = len(graph.nodes)
    assert rewritten(graph, fold_batch_norm.run, tolerance=5e-6) == ["bn folded into layer"]
    assert len(graph.nodes) == count - 2
    assert graph.nodes[-1].op == case.split(",")[0]


@pytest.mark.parametrize("case", KERNELS)
def test_stored_values_are_not_touched(case):
    b = Building()
    op = case.split(",")[0]
    shape = (6, 3, 3, 1) if case == "CONV_2D, groups" else KERNELS[case]
    values = b.rng.choice(np.float32([-0.5, 0.0, 0.25, 1.0]), shape)
    graph = b.end(batch_norm(b, linear(b, case, weights=b.constant(values))))
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    weights = stored(graph.nodes[-1].inputs[1])
    assert np.array_equal(weights.values, values)
    assert weights.axis == WEIGHTS_AXIS.get(op, 0)
    assert weights.channel_scale.min() < 0 < weights.channel_scale.max()


def test_factors_that_are_there_already_are_multiplied():
    b = Building()
    values = b.rng.choice(np.float32([-1, 0, 1]), (4, 3, 2, 3))
    weights = Tensor("kernel", np.float32, values.shape, constant=Constant(values, np.float32([1, 2, 3, 4]), 0))
    graph = b.end(batch_norm(b, linear(b, "CONV_2D", weights=weights)))
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    assert np.array_equal(stored(graph.nodes[0].inputs[1]).values, values)


def test_factors_along_another_axis_are_multiplied_in():
    b = Building()
    values = b.rng.choice(np.float32([-1, 0, 1]), (4, 3, 2, 3))
    weights = Tensor("kernel", np.float32, values.shape, constant=Constant(values, np.float32([1, 2, 3]), 3))
    graph = b.end(batch_norm(b, linear(b, "CONV_2D", weights=weights)))
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]


def test_float16_weights_stay_float16():
    b = Building()
    values = b.rng.normal(size=(4, 3)).astype(np.float16)
    weights = Tensor("kernel", np.float32, values.shape, constant=Constant(values))
    graph = b.end(batch_norm(b, linear(b, "FULLY_CONNECTED", weights=weights)))
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    assert stored(graph.nodes[0].inputs[1]).values.dtype == np.float16


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 1, 1, 4), (1, 4)])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
@pytest.mark.parametrize("first", [True, False])
def test_every_operation_with_a_constant(op, shape, first):
    b = Building()
    y, constant = linear(b, "CONV_2D"), b.positive(*shape)
    graph = b.end(b(op, *((constant, y) if first else (y, constant)), layer="after"))
    lines = rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    if op == "DIV" and first:
        assert lines == []
    else:
        assert lines == ["after folded into layer"]
        assert names(graph) == ["CONV_2D"]


def test_a_bias_alone():
    b = Building()
    graph = b.end(b("ADD", linear(b, "CONV_2D", bias=False), b.normal(4), layer="layer"))
    assert rewritten(graph, fold_batch_norm.run) == ["bias folded into layer"]
    assert graph.nodes[0].inputs[1].constant.channel_scale is None


def test_a_long_chain_with_its_activation():
    b = Building()
    y = batch_norm(b, b("NEG", batch_norm(b, linear(b, "CONV_2D"), "bn1")), "bn2")
    y = b("DIV", b("SUB", b.normal(4), y), b.constant(2.0), activation="CLAMP", clamp_min=-0.5, clamp_max=0.75)
    graph = b.end(y)
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]
    assert graph.nodes[0].attributes.activation == "CLAMP"
    assert graph.nodes[0].attributes.clamp_max == 0.75


def test_shared_weights_are_scaled_for_one_layer_only():
    b = Building()
    x, weights = b.x(None, 5, 5, 3), b.normal(4, 3, 3, 3)
    graph = b.end(batch_norm(b, b("CONV_2D", x, weights)), b("CONV_2D", x, weights))
    rewritten(graph, fold_batch_norm.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D", "CONV_2D"]


def test_a_result_that_others_read_stays():
    b = Building()
    y = linear(b, "CONV_2D")
    z = linear(b, "CONV_2D")
    graph = b.end(batch_norm(b, y), b("NEG", y), z, batch_norm(b, z))
    assert rewritten(graph, fold_batch_norm.run) == []


@pytest.mark.parametrize("shape", [(6, 1, 1), (6, 5, 4), (1, 5, 1), (1, 1, 1, 1, 4), (2, 1, 1, 4)])
def test_another_axis_stays(shape):
    b = Building()
    b.x(2, 6, 5, 3)
    x = b.graph.inputs[0]
    y = b("CONV_2D", x, b.normal(4, 3, 3, 3), padding="SAME", layer="layer")
    graph = b.end(b("MUL", y, b.normal(*shape), layer="bn"))
    assert rewritten(graph, fold_batch_norm.run) == []


def test_batch_norm_over_axis_1_of_as_many_rows_as_channels():
    b = Building()
    y = b("CONV_2D", b.x(None, 4, 4, 3), b.normal(4, 3, 3, 3), padding="SAME")
    graph = b.end(b("ADD", b("MUL", y, b.normal(4, 1, 1)), b.normal(4, 1, 1)))
    assert rewritten(graph, fold_batch_norm.run) == []


def test_near_misses():
    b = Building()
    activated = b("CONV_2D", b.x(None, 5, 5, 3), b.normal(4, 3, 3, 3), activation="RELU")
    computed = b("CONV_2D", b.x(None, 5, 5, 3), b("EXP", b.normal(4, 3, 3, 3)))
    divided = b("CONV_2D", b.x(None, 5, 5, 3), b.normal(4, 3, 3, 3))
    added = b("CONV_2D", b.x(None, 5, 5, 3), b.normal(4, 3, 3, 3))
    graph = b.end(
        batch_norm(b, activated),
        batch_norm(b, computed),
        b("DIV", divided, b.constant([1.0, 2.0, 0.0, 3.0])),
        b("ADD", added, b.x(None, 3, 3, 4)),
    )
    with np.errstate(all="ignore"):
        assert fold_batch_norm.run(graph) == []

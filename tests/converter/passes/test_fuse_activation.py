import pytest

from converter.passes import fuse_activation
from tests.converter.passes.building import Building, names, rewritten

MAKERS = {
    "CONV_2D": lambda b, **a: b("CONV_2D", b.x(None, 5, 5, 3), b.normal(4, 3, 3, 3), layer="maker", **a),
    "DEPTHWISE_CONV_2D": lambda b, **a: b(
        "DEPTHWISE_CONV_2D", b.x(None, 5, 5, 3), b.normal(1, 3, 3, 6), layer="maker", **a
    ),
    "CONV_3D": lambda b, **a: b("CONV_3D", b.x(None, 4, 4, 4, 2), b.normal(2, 2, 2, 2, 4), layer="maker", **a),
    "FULLY_CONNECTED": lambda b, **a: b("FULLY_CONNECTED", b.x(None, 5), b.normal(4, 5), layer="maker", **a),
    "AVERAGE_POOL_2D": lambda b, **a: b("AVERAGE_POOL_2D", b.x(None, 5, 5, 3), filter_h=2, layer="maker", **a),
    "MAX_POOL_2D": lambda b, **a: b("MAX_POOL_2D", b.x(None, 5, 5, 3), filter_w=2, layer="maker", **a),
    "ADD": lambda b, **a: b("ADD", b.x(None, 8), b.x(None, 8), layer="maker", **a),
    "SUB": lambda b, **a: b("SUB", b.x(None, 8), b.x(None, 8), layer="maker", **a),
    "MUL": lambda b, **a: b("MUL", b.x(None, 8), b.x(None, 8), layer="maker", **a),
    "DIV": lambda b, **a: b("DIV", b.x(None, 8), b.positive(8), layer="maker", **a),
}
CLAMPS = {"RELU": {}, "RELU6": {}, "RELU_N1_TO_1": {}, "CLAMP": {"min": -0.5, "max": 2.0}}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("clamp", CLAMPS)
def test_into_every_op_that_has_an_activation(maker, clamp):
    b = Building()
    graph = b.end(b(clamp, MAKERS[maker](b), layer="act", **CLAMPS[clamp]))
    assert rewritten(graph, fuse_activation.run) == [f"act ({clamp}) fused into maker"]
    assert names(graph) == [maker]
    assert graph.nodes[0].attributes.activation == clamp


def test_into_a_transposed_convolution():
    b = Building()
    x = b.x(None, 4, 4, 3)
    shape = b("PACK", b.batch_of(x), b.index(8), b.index(8), b.index(4), axis=0)
    attributes = {"stride_h": 2, "stride_w": 2, "padding": "SAME"}
    graph = b.end(b("RELU", b("TRANSPOSE_CONV", shape, b.normal(4, 2, 2, 3), x, **attributes)))
    rewritten(graph, fuse_activation.run)
    assert names(graph)[-1] == "TRANSPOSE_CONV"


@pytest.mark.parametrize(
    ("first", "second", "fused"),
    [
        (("RELU", {}), ("RELU6", {}), ("RELU6", 0.0, 0.0)),
        (("RELU6", {}), ("CLAMP", {"min": -1.0, "max": 3.0}), ("CLAMP", 0.0, 3.0)),
        (("CLAMP", {"min": -2.0, "max": -1.0}), ("RELU", {}), ("CLAMP", 0.0, 0.0)),
        (("RELU_N1_TO_1", {}), ("RELU_N1_TO_1", {}), ("RELU_N1_TO_1", 0.0, 0.0)),
    ],
)
def test_two_clamps(first, second, fused):
    b = Building()
    y = b(first[0], MAKERS["CONV_2D"](b), **first[1])
    graph = b.end(b(second[0], y, **second[1]))
    rewritten(graph, fuse_activation.run)
    attributes = graph.nodes[0].attributes
    assert names(graph) == ["CONV_2D"]
    assert (attributes.activation, attributes.clamp_min, attributes.clamp_max) == fused


def test_near_misses():
    b = Building()
    shared, output = MAKERS["CONV_2D"](b), MAKERS["ADD"](b)
    graph = b.end(
        b("RELU", shared),
        b("NEG", shared),
        output,
        b("RELU", output),
        b("TANH", MAKERS["FULLY_CONNECTED"](b)),
        b("RELU", b("MAXIMUM", b.x(None, 4), b.x(None, 4))),
        b("RELU", b("AVERAGE_POOL_3D", b.x(None, 4, 4, 4, 2))),
    )
    assert rewritten(graph, fuse_activation.run) == []

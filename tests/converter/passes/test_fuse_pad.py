import numpy as np
import pytest

from converter.passes import fuse_pad
from schema import Graph, Node, Tensor, evaluate
from schema.ops.attributes import Conv2DAttributes
from tests.converter.passes.building import Building, names, rewritten
from tests.support.operands import int8_operands


def pad(b: Building, x, *amounts, value=None):
    paddings = b.constant(amounts, np.int32)
    if value is None:
        return b("PAD", x, paddings, layer="pad")
    return b("PADV2", x, paddings, b.constant(value), layer="pad")


SIDES = [(0, 0), (1, 2), (0, 3), (0, 0)]


@pytest.mark.parametrize("value", [None, 0.0])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("depthwise", [False, True])
def test_around_a_convolution(value, stride, depthwise):
    b = Building()
    x = pad(b, b.x(None, 6, 5, 3), *SIDES, value=value)
    op, kernel = ("DEPTHWISE_CONV_2D", (1, 3, 3, 6)) if depthwise else ("CONV_2D", (4, 3, 3, 3))
    graph = b.end(b(op, x, b.normal(*kernel), stride_h=stride, stride_w=stride, layer="conv"))
    assert rewritten(graph, fuse_pad.run) == ["pad fused into conv"]
    assert names(graph) == [op]
    assert graph.nodes[0].attributes.pads == (1, 2, 0, 3)


def test_in_three_dimensions():
    b = Building()
    x = pad(b, b.x(None, 4, 4, 4, 2), (0, 0), (1, 1), (0, 2), (1, 0), (0, 0))
    graph = b.end(b("CONV_3D", x, b.normal(2, 3, 2, 2, 4)))
    rewritten(graph, fuse_pad.run)
    assert names(graph) == ["CONV_3D"]


def test_more_around_what_is_padded_already():
    b = Building()
    x = pad(b, b.x(None, 6, 5, 3), *SIDES)
    graph = b.end(b("CONV_2D", x, b.normal(4, 3, 3, 3), padding="EXPLICIT", pads=(1, 0, 2, 0)))
    rewritten(graph, fuse_pad.run)
    assert graph.nodes[0].attributes.pads == (2, 2, 2, 3)


@pytest.mark.parametrize("axis", [1, 2, -3])
def test_a_causal_convolution_of_one_dimension(axis):
    b = Building()
    x = pad(b, b.x(None, 9, 3), (0, 0), (4, 0), (0, 0))
    kernel = (3, 1) if axis == 2 else (1, 3)
    dilation = {"dilation_h": 2} if axis == 2 else {"dilation_w": 2}
    graph = b.end(b("CONV_2D", b("EXPAND_DIMS", x, b.index(axis)), b.normal(4, *kernel, 3), **dilation))
    rewritten(graph, fuse_pad.run)
    assert names(graph) == ["EXPAND_DIMS", "CONV_2D"]


def test_a_pad_that_several_convolutions_read():
    b = Building()
    x = pad(b, b.x(None, 6, 5, 3), *SIDES)
    graph = b.end(*(b("CONV_2D", x, b.normal(4, 3, 3, 3)) for _ in range(2)))
    rewritten(graph, fuse_pad.run)
    assert names(graph) == ["CONV_2D", "CONV_2D"]


@pytest.mark.parametrize("before", ["RELU", "RELU6", "LOGISTIC", "fused"])
def test_a_maximum_over_what_is_never_negative(before):
    b = Building()
    x = b.x(None, 8, 8, 3)
    y = b("ADD", x, b.constant(0.5), activation="RELU") if before == "fused" else b(before, x)
    padded = pad(b, y, (0, 0), (1, 1), (1, 0), (0, 0))
    graph = b.end(b("MAX_POOL_2D", padded, filter_h=3, filter_w=3, stride_h=2, stride_w=2))
    rewritten(graph, fuse_pad.run)
    assert names(graph)[-1] == "MAX_POOL_2D"
    assert len(graph.nodes) == 2


def test_near_misses():
    b = Building()
    x, positive = b.x(None, 6, 6, 3), b("RELU", b.x(None, 6, 6, 3))
    weights = b.normal(4, 3, 3, 3)
    around = [(0, 0), (1, 1), (1, 1), (0, 0)]
    graph = b.end(
        b("CONV_2D", pad(b, x, *around), weights, padding="SAME"),
        b("CONV_2D", pad(b, x, *around, value=1.0), weights),
        b("CONV_2D", pad(b, x, (0, 0), (1, 1), (1, 1), (0, 1)), b.normal(4, 3, 3, 4)),
        b("CONV_2D", b("MIRROR_PAD", x, b.constant(around, np.int32)), weights),
        b("MAX_POOL_2D", pad(b, x, *around), filter_h=3, filter_w=3),  # zeros may be the maximum
        b("MAX_POOL_2D", pad(b, positive, *around), filter_h=1, filter_w=3),  # windows of padding alone
        b("AVERAGE_POOL_2D", pad(b, positive, *around), filter_h=3, filter_w=3),  # zeros are counted
    )
    assert rewritten(graph, fuse_pad.run) == []


@pytest.mark.parametrize("depthwise", [False, True])
def test_int8_around_a_convolution(depthwise, rng):
    axis, shape = (3, (1, 3, 3, 4)) if depthwise else (0, (5, 3, 3, 4))
    op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    x, input_, constants, y = int8_operands(rng, (1, 6, 7, 4), shape, shape[axis], True, axis)
    padded = Tensor("padded", np.int8, None, input_.quantization)
    around = Tensor.from_array("around", np.array([(0, 0), (1, 0), (2, 1), (0, 0)], np.int32))
    nodes = [
        Node("PAD", [input_, around], [padded]),
        Node(op, [padded, *constants], [y], Conv2DAttributes()),
    ]
    graph = Graph(nodes, [input_], ["x"], [y], ["y"])
    expected = evaluate.run(graph, [x])
    assert len(fuse_pad.run(graph)) == 1
    assert names(graph) == [op]
    np.testing.assert_array_equal(evaluate.run(graph, [x])[0], expected[0])


def test_int8_padded_with_another_number_stays(rng):
    _, input_, constants, y = int8_operands(rng, (1, 6, 7, 4), (5, 3, 3, 4), 5, True)
    padded = Tensor("padded", np.int8, None, input_.quantization)
    around = Tensor.from_array("around", np.array([(0, 0), (1, 1), (1, 1), (0, 0)], np.int32))
    zero = Tensor.from_array("zero", np.array(0, np.int8), input_.quantization)  # its zero point is 3
    nodes = [
        Node("PADV2", [input_, around, zero], [padded]),
        Node("CONV_2D", [padded, *constants], [y], Conv2DAttributes()),
    ]
    assert fuse_pad.run(Graph(nodes, [input_], ["x"], [y], ["y"])) == []

import numpy as np
import pytest

from converter.passes import merge_linear
from schema import Quantization, Tensor
from tests.converter.passes.building import Building, names, rewritten


def pair(b: Building, first: tuple, second: tuple, *, bias=True, inner=None, outer=None):
    """CONV_2D of CONV_2D; first and second are (out, kernel)."""
    (middle, k), (out, j) = first, second
    biases = [b.normal(n) if given else None for n, given in ((middle, bias), (out, True))]
    x = b.x(None, 9, 10, 6)
    y = b("CONV_2D", x, b.normal(middle, k, k, 6), biases[0], layer="a", **(inner or {}))
    return b.end(b("CONV_2D", y, b.normal(out, j, j, middle), biases[1], layer="b", **(outer or {})))


@pytest.mark.parametrize("shape", [(12,), (5, 12)])
@pytest.mark.parametrize("keep", [True, False])
def test_dense_layers(shape, keep):
    b = Building()
    y = b("FULLY_CONNECTED", b.x(None, *shape), b.normal(20, 12), b.normal(20), layer="a", keep_num_dims=keep)
    graph = b.end(b("FULLY_CONNECTED", y, b.normal(3, 20), b.normal(3), layer="b", activation="RELU"))
    assert rewritten(graph, merge_linear.run) == ["a and b: two linear layers became one"]
    assert names(graph) == ["FULLY_CONNECTED"]
    assert graph.nodes[0].inputs[1].shape == (3, 12)
    assert graph.nodes[0].attributes.activation == "RELU"


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_a_pointwise_convolution_behind_another(padding, stride, step, kernel):
    inner = {"padding": padding, "stride_h": stride, "stride_w": stride}
    graph = pair(Building(), (16, kernel), (4, 1), inner=inner, outer={"stride_h": step, "stride_w": step})
    rewritten(graph, merge_linear.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]


def test_a_pointwise_convolution_before_another():
    graph = pair(Building(), (16, 1), (8, 3), outer={"dilation_h": 2, "stride_w": 2, "activation": "RELU6"})
    rewritten(graph, merge_linear.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]
    graph = pair(Building(), (16, 1), (8, 3), bias=False, outer={"padding": "SAME"})
    rewritten(graph, merge_linear.run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D"]


def test_near_misses():
    def stays(graph, left=0):
        before = names(graph)
        assert rewritten(graph, merge_linear.run) == []
        assert names(graph) == before
        assert len(merge_linear.survey(graph)) == left

    stays(pair(Building(), (16, 1), (8, 3), outer={"padding": "SAME"}))  # the bias is not there behind the border
    stays(pair(Building(), (16, 3), (8, 3)))
    stays(pair(Building(), (16, 1), (8, 1), inner={"activation": "RELU"}))
    stays(pair(Building(), (16, 1), (8, 1), outer={"padding": "EXPLICIT", "pads": (1, 1, 1, 1)}))
    stays(pair(Building(), (2, 1), (8, 1)), left=1)  # a bottleneck
    b = Building()
    y = b("FULLY_CONNECTED", b.x(None, 12), b.normal(20, 12), None)
    stays(b.end(b("FULLY_CONNECTED", y, b.normal(3, 20), None), y))  # its result is an output


def test_sizes_that_are_open():
    b = Building()
    y = b("CONV_2D", b.x(None, None, None, 6), b.normal(16, 3, 3, 6), None, padding="SAME", stride_h=2, stride_w=2)
    graph = b.end(b("CONV_2D", y, b.normal(4, 1, 1, 16), None, stride_h=2, stride_w=2))
    assert rewritten(graph, merge_linear.run) == []


def test_what_a_product_of_pruned_kernels_would_take_is_counted():
    b = Building()
    sparse = [np.where(b.rng.random(s) < 0.03, b.rng.normal(size=s), 0.0) for s in ((200, 256), (128, 200))]
    y = b("FULLY_CONNECTED", b.x(None, 256), b.constant(sparse[0]), None, layer="a")
    graph = b.end(b("FULLY_CONNECTED", y, b.constant(sparse[1]), None, layer="b"))
    assert rewritten(graph, merge_linear.run) == []
    (left,) = merge_linear.survey(graph)
    assert left.saving.macs > 0 > left.saving.weight_bytes
    assert left.against == f"{-left.saving.weight_bytes} bytes more would be stored"


def test_a_kernel_that_others_read_too_stays_in_the_file():
    b = Building()
    x, kernel = b.x(None, 12), b.normal(12, 12)
    y = b("FULLY_CONNECTED", b("FULLY_CONNECTED", x, kernel, None, layer="a"), b.normal(12, 12), None, layer="b")
    graph = b.end(y, b("FULLY_CONNECTED", b.x(None, 12), kernel, None))
    assert rewritten(graph, merge_linear.run) == ["a and b: two linear layers became one"]  # of the second's size
    b = Building()
    x, kernel = b.x(None, 12), b.normal(20, 12)
    y = b("FULLY_CONNECTED", b("FULLY_CONNECTED", x, kernel, None), b.normal(12, 20), None)
    z = b("FULLY_CONNECTED", b("FULLY_CONNECTED", x, kernel, None, activation="RELU"), b.normal(11, 20), None)
    graph = b.end(y, z)
    assert len(rewritten(graph, merge_linear.run)) == 1
    b = Building()
    x, kernel = b.x(None, 40), b.normal(20, 40)
    y = b("FULLY_CONNECTED", b("FULLY_CONNECTED", x, kernel, None), b.normal(12, 20), None)
    graph = b.end(y, b("FULLY_CONNECTED", x, kernel, None, activation="RELU"))
    assert rewritten(graph, merge_linear.run) == []  # 12 x 40 instead of 12 x 20
    assert len(merge_linear.survey(graph)) == 1


def test_integers_are_told_and_stay():
    b = Building()
    x = b.x(None, 12, dtype=np.int8)
    x.quantization = Quantization(0.05, 3)
    y = x
    for out, depth in ((20, 12), (3, 20)):
        kernel = b.rng.integers(-127, 128, (out, depth)).astype(np.int8)
        kernel = Tensor.from_array("kernel", kernel, Quantization(np.full(out, 0.01, np.float32), 0, 0))
        y = b("FULLY_CONNECTED", y, kernel, None)
        y.quantization = Quantization(0.1, -1)
    graph = b.end(y)
    assert rewritten(graph, merge_linear.run) == []
    assert [c.against for c in merge_linear.survey(graph)] == ["the file's integers would change"]

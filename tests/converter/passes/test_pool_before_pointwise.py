import numpy as np
import pytest

from converter.passes import pool_before_pointwise
from schema import Constant, Quantization, Tensor
from tests.converter.passes.building import Building, names, rewritten, stored


@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_global_average_pooling_behind_a_classifier(keep_dims, bias):
    b = Building()
    y = b("CONV_2D", b.x(None, 4, 5, 12), b.normal(7, 1, 1, 12), b.normal(7) if bias else None, layer="conv10")
    graph = b.end(b("MEAN", y, b.integers(1, 2), layer="gap", keep_dims=keep_dims))
    assert rewritten(graph, pool_before_pointwise.run) == ["gap: MEAN moved before conv10"]
    assert names(graph) == ["MEAN", "CONV_2D" if keep_dims else "FULLY_CONNECTED"]
    assert [node.name for node in graph.nodes] == ["gap", "conv10"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_an_average_pooling(padding):
    b = Building()
    y = b("CONV_2D", b.x(None, 7, 8, 12), b.normal(6, 1, 1, 12), b.normal(6), layer="conv")
    pool = {"filter_h": 2, "filter_w": 3, "stride_h": 2, "stride_w": 2, "activation": "RELU6"}
    graph = b.end(b("AVERAGE_POOL_2D", y, layer="pool", padding=padding, **pool))
    rewritten(graph, pool_before_pointwise.run)
    assert names(graph) == ["AVERAGE_POOL_2D", "CONV_2D"]
    assert [node.attributes.activation for node in graph.nodes] == ["NONE", "RELU6"]


def test_a_mean_over_time():
    b = Building()
    y = b("FULLY_CONNECTED", b.x(None, 9, 12), b.normal(6, 12), b.normal(6), layer="dense")
    graph = b.end(b("MEAN", y, b.integers(1), layer="mean"))
    rewritten(graph, pool_before_pointwise.run)
    assert names(graph) == ["MEAN", "FULLY_CONNECTED"]


def test_the_stored_kernel_stays():
    b = Building()
    kernel = Tensor("kernel", np.float32)
    kernel.set_constant(Constant(b.rng.integers(-7, 8, (6, 1, 1, 12)).astype(np.int8), b.positive(6).value, 0))
    y = b("CONV_2D", b.x(None, 4, 5, 12), kernel, None)
    graph = b.end(b("MEAN", y, b.integers(1, 2)))
    rewritten(graph, pool_before_pointwise.run)
    moved = stored(graph.nodes[-1].inputs[1])
    assert moved.values.dtype == np.int8
    assert moved.values.shape == (6, 12)
    assert moved.channel_scale is stored(kernel).channel_scale


def test_near_misses():
    def stays(conv, pool, bias=True):
        b = Building()
        graph = b.end(pool(b, conv(b, b.x(None, 6, 6, 12))))
        before = names(graph)
        assert rewritten(graph, pool_before_pointwise.run) == []
        assert names(graph) == before
        return pool_before_pointwise.survey(graph)

    def plain(b, x):
        return b("CONV_2D", x, b.normal(7, 1, 1, 12), b.normal(7))

    def mean(b, y):
        return b("MEAN", y, b.integers(1, 2))

    assert not stays(lambda b, x: b("RELU", plain(b, x)), mean)
    assert not stays(lambda b, x: b("CONV_2D", x, b.normal(7, 1, 1, 12), None, activation="RELU"), mean)
    assert not stays(lambda b, x: b("CONV_2D", x, b.normal(7, 1, 1, 12), None, stride_h=2), mean)
    assert not stays(lambda b, x: b("CONV_2D", x, b.normal(7, 3, 3, 12), None), mean)
    assert not stays(plain, lambda b, y: b("MEAN", y, b.integers(1, 3)))  # of channels
    assert not stays(plain, lambda b, y: b("MAX_POOL_2D", y, filter_h=2, filter_w=2))
    padded = {"padding": "EXPLICIT", "pads": (1, 0, 0, 0)}
    assert not stays(lambda b, x: b("CONV_2D", x, b.normal(7, 1, 1, 12), None, **padded), mean)


def test_integers_are_told_and_stay():
    b = Building()
    x = b.x(None, 4, 5, 12, dtype=np.int8)
    x.quantization = Quantization(0.05, 3)
    kernel = b.rng.integers(-127, 128, (7, 1, 1, 12)).astype(np.int8)
    y = b("CONV_2D", x, Tensor.from_array("k", kernel, Quantization(np.full(7, 0.01, np.float32), 0, 0)), None)
    y.quantization = Quantization(0.1, 0)
    pooled = b("MEAN", y, b.integers(1, 2))
    pooled.quantization = Quantization(0.1, 0)
    graph = b.end(pooled)
    assert rewritten(graph, pool_before_pointwise.run) == []
    (left,) = pool_before_pointwise.survey(graph)
    assert left.against == "the file's integers would change"
    assert left.saving.macs == 19 * 7 * 12

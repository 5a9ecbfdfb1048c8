import numpy as np
import pytest

from converter.passes import clamp
from tests.converter.passes.building import Building, names, rewritten


def between(b: Building, x, low, high, order):
    if order == "MINIMUM first":
        return b("MAXIMUM", b("MINIMUM", x, b.constant(high)), b.constant(low))
    return b("MINIMUM", b("MAXIMUM", b.constant(low), x), b.constant(high))


@pytest.mark.parametrize("order", ["MINIMUM first", "MAXIMUM first"])
@pytest.mark.parametrize(
    ("low", "high", "op"), [(0, 6, "RELU6"), (-1, 1, "RELU_N1_TO_1"), (0, 1, "CLAMP"), (-2, 3, "CLAMP")]
)
def test_both_bounds(low, high, op, order):
    b = Building()
    graph = b.end(between(b, b.x(None, 64), low, high, order))
    rewritten(graph, clamp.run)
    assert names(graph) == [op]


def test_a_maximum_with_zero_is_relu():
    b = Building()
    graph = b.end(b("MAXIMUM", b.x(None, 64), b.constant(0.0), layer="layer"))
    assert rewritten(graph, clamp.run) == ["layer: MAXIMUM became RELU"]


def test_relu_with_a_bound():
    b = Building()
    y = b("MAXIMUM", b("MINIMUM", b("RELU", b.x(None, 64)), b.constant(3.0)), b.constant(0.0))
    graph = b.end(y)
    rewritten(graph, clamp.run)
    assert names(graph) == ["CLAMP"]
    assert (graph.nodes[0].attributes.min, graph.nodes[0].attributes.max) == (0.0, 3.0)


def test_bounds_that_exclude_each_other():
    b = Building()
    graph = b.end(b("MINIMUM", b("MAXIMUM", b.x(None, 8), b.constant(2.0)), b.constant(1.0)))
    rewritten(graph, clamp.run)
    assert names(graph) == ["CLAMP"]


@pytest.mark.parametrize("before", ["RELU6", "LOGISTIC", "SQUARE", "MAX_POOL_2D", "CONCATENATION", "PAD"])
def test_what_is_in_range_already(before):
    b = Building()
    x = b("RELU", b.x(None, 4, 4, 2))
    y = {
        "MAX_POOL_2D": lambda: b("MAX_POOL_2D", x, filter_h=2, filter_w=2),
        "CONCATENATION": lambda: b("CONCATENATION", x, b("EXP", b.x(None, 4, 4, 1)), axis=-1),
        "PAD": lambda: b("PAD", x, b.constant(np.ones((4, 2)), np.int32)),
    }.get(before, lambda: b(before, x))()
    graph = b.end(b("NEG", b("RELU", y, layer="second")))
    assert "second: RELU changes nothing" in rewritten(graph, clamp.run)
    assert "second" not in [node.name for node in graph.nodes]


def test_near_misses():
    b = Building()
    x = b.x(None, 64)
    shared = b("RELU", x)
    graph = b.end(
        b("MAXIMUM", x, b.constant(0.5)),
        b("MINIMUM", x, b.constant(6.0)),
        b("MAXIMUM", x, b.constant(np.zeros(64))),
        b("MINIMUM", shared, b.constant(np.full(64, 6.0))),
        shared,
        b("MAXIMUM", x, b.constant([[[0.0]]])),
        b("RELU", b("MEAN", b("TANH", x), b.integers(1))),
    )
    assert rewritten(graph, clamp.run) == []


def test_a_clamp_that_others_read_is_not_taken_in():
    b = Building()
    x = b("RELU", b.x(None, 64))
    graph = b.end(b("NEG", x), b("MINIMUM", x, b.constant(1.0)))
    assert rewritten(graph, clamp.run) == []

import numpy as np
import pytest

from converter.passes import normalize_reductions
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("op", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize("axes", [[-2, -3], [2, 1], [-3, 2]])
def test_axes_in_order_from_the_front(op, axes):
    b = Building()
    graph = b.end(b(op, b.x(None, 3, 4, 2), b.constant(axes, np.int64), layer="pool"))
    assert rewritten(graph, normalize_reductions.run) == [f"pool: {op} over axes [1, 2]"]
    assert graph.nodes[0].inputs[1].value.tolist() == [1, 2]
    assert rewritten(graph, normalize_reductions.run) == []


def test_a_scalar_axis():
    b = Building()
    graph = b.end(b("MEAN", b.x(None, 5, 3), b.index(1)))
    rewritten(graph, normalize_reductions.run)
    assert graph.nodes[0].inputs[1].value.tolist() == [1]


def test_a_reshape_that_only_keeps_the_axes():
    b = Building()
    mean = b("MEAN", b.x(None, 3, 4, 2), b.integers(1, 2), layer="squeeze")
    graph = b.end(b("RELU", b("RESHAPE", mean, b.integers(-1, 1, 1, 2))))
    assert rewritten(graph, normalize_reductions.run) == ["squeeze: MEAN keeps its axes"]
    assert names(graph) == ["MEAN", "RELU"]
    assert graph.nodes[0].attributes.keep_dims


def test_a_mean_whose_axes_come_back_later():
    b = Building()
    x = b.x(None, 3, 4, 2)
    mean = b("MEAN", x, b.integers(1, 2), layer="norm")
    back = b("RESHAPE", b("RSQRT", b("ADD", b("SQUARE", mean), b.constant(1.0))), b.integers(-1, 1, 1, 2))
    graph = b.end(b("MUL", x, back), b("NEG", mean))
    assert rewritten(graph, normalize_reductions.run) == ["norm: MEAN keeps its axes"]
    assert names(graph)[:2] == ["MEAN", "RESHAPE"]
    assert graph.nodes[0].attributes.keep_dims


def test_axes_of_1_are_not_reduced():
    b = Building()
    x = b.x(None, 1, 4, 1)
    graph = b.end(
        b("MEAN", x, b.integers(1, 2, 3), keep_dims=True),
        b("MEAN", x, b.integers(1, 2, 3)),
        b("MEAN", x, b.integers(1), keep_dims=True),
    )
    assert len(rewritten(graph, normalize_reductions.run)) == 1
    assert [node.inputs[1].value.tolist() for node in graph.nodes] == [[2], [1, 2, 3], [1]]


@pytest.mark.parametrize("shape", [(-1, 1, 2), (-1, 2, 1, 1), (-1, 1)])
def test_another_reshape_stays(shape):
    b = Building()
    mean = b("MEAN", b.x(None, 3, 4, 2), b.integers(1, 2))
    graph = b.end(b("RESHAPE", mean, b.integers(*shape)))
    assert rewritten(graph, normalize_reductions.run) == []


def test_a_sum_by_its_count():
    b = Building()
    total = b("SUM", b.x(None, 3, 4, 2), b.integers(1, 2))
    graph = b.end(b("MUL", total, b.constant(1 / 12)))
    rewritten(graph, normalize_reductions.run)
    assert names(graph) == ["MEAN"]


@pytest.mark.parametrize(("axes", "factor"), [((1, 2), 1 / 11), ((0,), 1 / 2)])
def test_a_sum_by_another_number(axes, factor):
    b = Building()
    total = b("SUM", b.x(None, 3, 4, 2), b.integers(*axes))
    graph = b.end(b("MUL", total, b.constant(factor)))
    assert rewritten(graph, normalize_reductions.run) == []

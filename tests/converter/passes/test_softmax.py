import pytest

from converter.passes import softmax
from tests.converter.passes.building import Building, names, rewritten


def spelled(b: Building, x, axis, shifted=True, keep_dims=True):
    if shifted:
        x = b("SUB", x, b("REDUCE_MAX", x, b.integers(axis), keep_dims=True))
    above = b("EXP", x)
    return b("DIV", above, b("SUM", above, b.integers(axis), keep_dims=keep_dims), layer="softmax")


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("shifted", [True, False])
def test_a_quotient_of_exponentials(axis, shifted):
    b = Building()
    graph = b.end(spelled(b, b.x(None, 3, 4, 5), axis, shifted))
    assert rewritten(graph, softmax.run) == [f"softmax: recognised as SOFTMAX over axis {axis % 4}"]
    assert names(graph) == ["SOFTMAX"]


def test_near_misses():
    b = Building()
    x = b.x(None, 4, 4)
    above, other = b("EXP", x), b("EXP", b.x(None, 4, 4))
    graph = b.end(
        spelled(b, b.x(3, 3), 1, keep_dims=False),
        b("DIV", above, b("SUM", other, b.integers(2), keep_dims=True)),
        b("DIV", above, b("SUM", above, b.integers(1, 2), keep_dims=True)),
        b("DIV", above, b("MEAN", above, b.integers(2), keep_dims=True)),
        b("DIV", b("SUM", above, b.integers(2), keep_dims=True), above),
    )
    assert rewritten(graph, softmax.run) == []


def test_another_shift_is_part_of_the_argument():
    b = Building()
    x = b.x(None, 3, 4)
    above = b("EXP", b("SUB", x, b("REDUCE_MAX", x, b.integers(1), keep_dims=True)))
    graph = b.end(b("DIV", above, b("SUM", above, b.integers(2), keep_dims=True)))
    rewritten(graph, softmax.run)
    assert names(graph) == ["REDUCE_MAX", "SUB", "SOFTMAX"]


@pytest.mark.parametrize("axis", [-1, 1])
def test_attention_scales_its_scores(axis):
    b = Building()
    scores = b("DIV", b("MUL", b.x(None, 3, 4), b.constant(0.5)), b.constant(2.0))
    graph = b.end(b("SOFTMAX", scores, axis=axis, beta=2.0, layer="attention"))
    assert rewritten(graph, softmax.run) == ["attention: SOFTMAX scales by 0.5"]
    assert names(graph) == ["SOFTMAX"]


def test_factors_that_stay():
    b = Building()
    x = b.x(None, 3, 4)
    shared = b("MUL", x, b.constant(0.5))
    graph = b.end(
        b("SOFTMAX", b("MUL", x, b.constant(-0.5))),
        b("SOFTMAX", b("MUL", x, b.normal(4))),
        b("SOFTMAX", b("ADD", x, b.constant(0.5))),
        b("SOFTMAX", shared),
        shared,
    )
    assert rewritten(graph, softmax.run) == []

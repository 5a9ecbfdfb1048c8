import pytest

from converter.passes import drop_unit_reductions
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("op", drop_unit_reductions.REDUCTIONS)
def test_axes_of_one(op):
    b = Building()
    y = b("RELU", b.x(None, 1, 1, 5))
    graph = b.end(b(op, y, b.integers(1, -2), layer="gap"))
    assert rewritten(graph, drop_unit_reductions.run) == [f"gap: {op} of one number at a time"]
    assert names(graph) == ["RELU", "SQUEEZE"]
    b = Building()
    y = b("RELU", b.x(None, 1, 1, 5))
    graph = b.end(b("NEG", b(op, y, b.integers(1, 2), keep_dims=True)))
    rewritten(graph, drop_unit_reductions.run)
    assert names(graph) == ["RELU", "NEG"]


@pytest.mark.parametrize("op", drop_unit_reductions.POOLS)
def test_windows_of_one(op):
    b = Building()
    graph = b.end(b("NEG", b(op, b("RELU", b.x(None, 6, 6, 5)), padding="SAME")))
    rewritten(graph, drop_unit_reductions.run)
    assert names(graph) == ["RELU", "NEG"]


def test_near_misses():
    b = Building()
    x = b.x(None, 1, 3, 5)
    graph = b.end(
        b("MEAN", x, b.integers(1, 2)),
        b("MAX_POOL_2D", x, stride_w=2),
        b("MAX_POOL_2D", x, activation="RELU"),
        b("MEAN", b.x(None, None, None, 3), b.integers(1, 2)),
    )
    assert rewritten(graph, drop_unit_reductions.run) == []

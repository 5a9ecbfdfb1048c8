import numpy as np
import pytest

from converter.passes import simplify_powers
from tests.converter.passes.building import Building, names, rewritten


def positive(b: Building):
    return b("EXP", b.x(None, 4))


@pytest.mark.parametrize(("exponent", "op"), [(2.0, "SQUARE"), (0.5, "SQRT"), (-0.5, "RSQRT"), (-1.0, "RECIPROCAL")])
def test_powers(exponent, op):
    b = Building()
    graph = b.end(b("POW", positive(b), b.constant(exponent)))
    rewritten(graph, simplify_powers.run)
    assert names(graph) == ["EXP", op]


def test_products_and_quotients():
    b = Building()
    x = positive(b)
    graph = b.end(b("MUL", x, x), b("DIV", b.constant(1.0), x))
    rewritten(graph, simplify_powers.run)
    assert names(graph) == ["EXP", "SQUARE", "RECIPROCAL"]


@pytest.mark.parametrize(
    ("inner", "outer", "op"),
    [("SQRT", "RECIPROCAL", "RSQRT"), ("RECIPROCAL", "SQRT", "RSQRT"), ("RSQRT", "RECIPROCAL", "SQRT")],
)
def test_pairs(inner, outer, op):
    b = Building()
    graph = b.end(b(outer, b(inner, positive(b))))
    rewritten(graph, simplify_powers.run)
    assert names(graph) == ["EXP", op]


def test_near_misses():
    b = Building()
    x, y = positive(b), positive(b)
    graph = b.end(
        b("POW", x, b.constant(3.0)),
        b("POW", x, b.constant([2.0, 2.0, 2.0, 0.5])),
        b("POW", x, b.constant([[[2.0]]])),
        b("MUL", x, y),
        b("MUL", x, x, activation="RELU"),
        b("DIV", b.constant(2.0), x),
        b("DIV", x, b.constant(1.0)),
        b("SQRT", b("SQRT", x)),
    )
    assert rewritten(graph, simplify_powers.run) == []


def test_integers_stay():
    b = Building()
    x = b.x(None, 4, dtype=np.int32)
    graph = b.end(b("MUL", x, x))
    assert rewritten(graph, simplify_powers.run) == []

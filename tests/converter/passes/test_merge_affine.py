import numpy as np
import pytest

from converter.passes import merge_affine
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("op", ["ADD", "MUL"])
@pytest.mark.parametrize("shapes", [((), (4,)), ((4,), (4,)), ((3, 1), ())])
def test_two_of_a_kind(op, shapes):
    b = Building()
    inner = b(op, b.x(None, 3, 4), b.positive(*shapes[0]), layer="a")
    graph = b.end(b(op, inner, b.positive(*shapes[1]), layer="b", activation="RELU6"))
    assert rewritten(graph, merge_affine.run) == [f"a and b: {op} of two constants became one"]
    assert names(graph) == [op]
    assert graph.nodes[0].attributes.activation == "RELU6"


def test_a_factor_goes_before_an_addend():
    b = Building()
    x = b("MUL", b("ADD", b.x(None, 4), b.normal(4), layer="norm"), b.positive(4), layer="norm", activation="RELU")
    graph = b.end(x)
    rewritten(graph, merge_affine.run)
    assert names(graph) == ["MUL", "ADD"]
    assert graph.nodes[0].attributes.activation == "NONE"
    assert graph.nodes[1].attributes.activation == "RELU"


def test_near_misses():
    b = Building()
    x = b.x(None, 4)
    shared = b("MUL", x, b.normal(4))
    graph = b.end(
        b("ADD", b("MUL", x, b.normal(4)), b.normal(4)),  # the normal form
        b("MUL", b("ADD", x, b.constant(-2000.0)), b.constant(0.1)),  # the addend would be lost in rounding
        b("MUL", b("MUL", x, b.normal(4), activation="RELU"), b.normal(4)),
        b("MUL", shared, b.normal(4)),
        shared,
        b("MUL", b("MUL", b.x(None, 200, 4), b.normal(4)), b.normal(200, 1)),  # would be a large constant
    )
    assert rewritten(graph, merge_affine.run) == []


def test_integers_stay():
    b = Building()
    x = b.x(None, 4, dtype=np.int32)
    graph = b.end(b("MUL", b("MUL", x, b.integers(2)), b.integers(3)))
    assert rewritten(graph, merge_affine.run) == []

import numpy as np
import pytest

from converter.passes import normalize_constants
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize(
    ("op", "first", "becomes"),
    [("ADD", True, "ADD"), ("MUL", True, "MUL"), ("SUB", False, "ADD"), ("DIV", False, "MUL")],
)
@pytest.mark.parametrize("shape", [(), (4,), (3, 4)])
def test_one_spelling(op, first, becomes, shape):
    b = Building()
    x, constant = b.x(None, 3, 4), b.positive(*shape)
    graph = b.end(b(op, *((constant, x) if first else (x, constant)), layer="layer", activation="RELU"))
    assert len(rewritten(graph, normalize_constants.run)) == 1
    assert names(graph) == [becomes]
    assert graph.nodes[0].inputs[0] is graph.inputs[0]
    assert graph.nodes[0].attributes.activation == "RELU"


def test_a_difference_from_0():
    b = Building()
    x = b.x(None, 4)
    graph = b.end(b("SUB", b.constant(0.0), x), b("SUB", b.constant(np.zeros(4)), x))
    rewritten(graph, normalize_constants.run)
    assert names(graph) == ["NEG", "NEG"]


@pytest.mark.parametrize(("op", "first"), [("ADD", False), ("MUL", False), ("SUB", True), ("DIV", True)])
def test_what_has_its_spelling_already(op, first):
    b = Building()
    x, constant = b.x(None, 4), b.positive(4)
    graph = b.end(b(op, *((constant, x) if first else (x, constant))))
    assert rewritten(graph, normalize_constants.run) == []


@pytest.mark.parametrize("divisor", [0.0, np.inf, 1e-45])
def test_a_division_whose_inverse_is_no_number(divisor):
    b = Building()
    graph = b.end(b("MINIMUM", b("DIV", b("RELU", b.x(None, 4)), b.constant(divisor)), b.constant(1.0)))
    with np.errstate(all="ignore"):
        normalize_constants.run(graph)
    assert "DIV" in names(graph)


def test_integers_are_not_reals():
    b = Building()
    graph = b.end(b("SUB", b.x(None, 4, dtype=np.int32), b.integers(3)))
    assert rewritten(graph, normalize_constants.run) == []

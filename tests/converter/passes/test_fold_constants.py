import numpy as np

from converter.passes import fold_constants
from tests.converter.passes.building import Building, names, rewritten


def test_arithmetic_of_constants_becomes_one_constant():
    b = Building()
    x = b.x(None, 4)
    scale = b("MUL", b("RSQRT", b("ADD", b.positive(4), b.constant(1e-3))), b.normal(4), layer="bn")
    graph = b.end(b("MUL", x, scale, layer="bn"))
    lines = rewritten(graph, fold_constants.run)
    assert names(graph) == ["MUL"]
    assert any("bn" in line for line in lines)


def test_a_result_with_several_parts():
    b = Building()
    x = b.x(None, 2)
    parts = b.nodes("SPLIT", b.index(0), b.normal(4), attributes=b.kind("SPLIT", num=2))
    graph = b.end(b("ADD", b("ADD", x, parts[0]), parts[1]))
    rewritten(graph, fold_constants.run)
    assert names(graph) == ["ADD", "ADD"]


def test_what_grows_large_stays_computed():
    b = Building()
    x = b.x(None, 200, 100)
    filled = b("FILL", b.integers(200, 100), b.constant(2.0))
    row_by_column = b("ADD", b.normal(200, 1), b.normal(1, 100))
    graph = b.end(b("ADD", b("ADD", x, filled), row_by_column))
    assert rewritten(graph, fold_constants.run) == []
    assert names(graph) == ["FILL", "ADD", "ADD", "ADD"]


def test_what_depends_on_an_input_or_is_an_output_stays():
    b = Building()
    x = b.x(None, 4)
    constant = b("NEG", b.normal(4))
    graph = b.end(b("NEG", x), constant)
    assert rewritten(graph, fold_constants.run) == []
    assert names(graph) == ["NEG", "NEG"]


def test_large_constants_may_change_their_form():
    b = Building()
    x = b.x(None, 64)
    weights = b("TRANSPOSE", b.normal(64, 32), b.integers(1, 0))
    graph = b.end(b("FULLY_CONNECTED", x, weights))
    rewritten(graph, fold_constants.run)
    assert names(graph) == ["FULLY_CONNECTED"]
    assert np.shape(graph.nodes[0].inputs[1].value) == (32, 64)

import numpy as np
import pytest

from converter.passes import fold_splats
from tests.converter.passes.building import Building, names, rewritten

INT32 = np.dtype(np.int32)


def filled(b: Building, x, number):
    return b("FILL", b("SHAPE", x, dtype=INT32), b.constant(number))


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("first", [True, False])
def test_a_filled_operand_is_a_number(op, first):
    b = Building()
    x = b.x(None, 3, 4)
    operands = (filled(b, x, 2.5), x) if first else (x, filled(b, x, 2.5))
    graph = b.end(b(op, *operands, layer="layer"))
    assert rewritten(graph, fold_splats.run) == [f"layer: an operand of {op} is 2.5 everywhere"]
    assert names(graph) == [op]


def test_through_moves_sums_and_means():
    b = Building()
    x = b.x(None, 3, 4)
    ones = b("RESHAPE", b("ADD", filled(b, x, 0.0), b.constant(1.0)), b.integers(-1, 12))
    count = b("SUM", ones, b.integers(1), keep_dims=True)
    flat = b("RESHAPE", x, b.integers(-1, 12))
    mean = b("MEAN", ones, b.integers(-1), keep_dims=True)
    graph = b.end(b("MUL", b("DIV", flat, count), mean))
    rewritten(graph, fold_splats.run)
    assert names(graph) == ["RESHAPE", "DIV", "MUL"]
    assert graph.nodes[1].inputs[1].value == 12.0


def test_a_choice_by_one_truth_value():
    b = Building()
    x = b.x(None, 4)
    count = b("SUM", filled(b, x, 1.0), b.integers(1), keep_dims=True)
    safe = b("SELECT_V2", b("EQUAL", count, b.constant(0.0)), b.constant(0.0), b("DIV", x, count))
    graph = b.end(b("RELU", safe))
    rewritten(graph, fold_splats.run)
    assert names(graph) == ["DIV", "RELU"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 3, 4), b.x(None, 4)
    row = b("SUM", y, b.integers(1), keep_dims=True)
    graph = b.end(
        b("ADD", b("RESHAPE", row, b.integers(-1, 1, 1)), x),  # not one number
        b("MUL", row, filled(b, y, 2.0)),  # the filled operand is what gives the result its shape
        b("ADD", x, b("SUM", filled(b, x, 1.0), b.integers(0), keep_dims=True)),  # the batch is unknown
    )
    assert rewritten(graph, fold_splats.run) == []

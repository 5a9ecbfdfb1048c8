import numpy as np
import pytest

from converter.passes import leaky_relu
from tests.converter.passes.building import Building, names, rewritten


def two_sided(b: Building, x, slope, op="ADD", swapped=False):
    factor = b.constant(-slope if op == "ADD" else slope)
    operands = [b("RELU", x), b("MUL", factor, b("RELU", b("NEG", x)))]
    return b(op, *(operands[::-1] if swapped else operands), layer="p_re_lu")


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (3, 5, 4)])
@pytest.mark.parametrize(("op", "swapped"), [("ADD", False), ("ADD", True), ("SUB", False)])
def test_prelu_as_keras_spells_it(shape, op, swapped):
    b = Building()
    slope = b.rng.normal(size=shape)
    graph = b.end(two_sided(b, b.x(None, 3, 5, 4), slope, op, swapped))
    assert rewritten(graph, leaky_relu.run) == ["p_re_lu: recognised as PRELU"]
    assert names(graph) == ["PRELU"]


@pytest.mark.parametrize("op", ["ADD", "SUB"])
def test_one_slope_for_all(op):
    b = Building()
    graph = b.end(two_sided(b, b.x(None, 8), np.array(0.3), op))
    rewritten(graph, leaky_relu.run)
    assert names(graph) == ["LEAKY_RELU"]
    assert graph.nodes[0].attributes.alpha == pytest.approx(0.3)


@pytest.mark.parametrize("slope", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_maximum(slope, swapped):
    b = Building()
    x = b.x(None, 8)
    operands = [x, b("MUL", x, b.constant(slope))]
    graph = b.end(b("MAXIMUM", *(operands[::-1] if swapped else operands)))
    rewritten(graph, leaky_relu.run)
    assert names(graph) == ["LEAKY_RELU"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 8), b.x(None, 8)
    slope = b.constant(0.3)
    relu, negative = b("RELU", x), b("RELU", b("NEG", x))
    graph = b.end(
        b("MAXIMUM", x, b("MUL", x, b.constant(1.5))),  # a minimum
        b("MAXIMUM", x, b("ADD", x, b.constant(0.5))),
        b("MAXIMUM", x, b("MUL", y, slope)),
        b("SUB", b("MUL", negative, slope), relu),
        b("ADD", relu, b("MUL", b("RELU", b("NEG", y)), slope)),
        b("ADD", relu, b("MUL", b("RELU", b("ADD", b("NEG", x), slope)), slope)),
        b("ADD", relu, b("MUL", b("RELU", x), slope)),
        b("ADD", relu, b("MUL", negative, b.normal(1, 1, 8))),  # gains an axis
    )
    assert rewritten(graph, leaky_relu.run) == []

import math

import pytest

from converter.passes import gelu
from tests.converter.passes.building import Building, names, rewritten

ROOT = math.sqrt(0.5)
SLOPE = math.sqrt(2 / math.pi)


def erfc(b, x, factor):
    """1 - erf(-x * factor), as an op set without erfc has it."""
    inner = b("ERF", b("MUL", b("NEG", x), b.constant(factor)))
    return b("SUB", b.constant(1.0), inner)


def cube(b, x):
    return b("POW", x, b.constant(3.0))


def tanh(b, x, cubed, cubic=0.044715, slope=SLOPE):
    inner = b("ADD", x, b("MUL", b.constant(cubic), cubed))
    return b("TANH", b("MUL", b.constant(slope), inner))


def half(b, x):
    return b("MUL", b.constant(0.5), x)


def plus_one(b, x):
    return b("ADD", b.constant(1.0), x)


EXACT = {
    "TensorFlow": lambda b, x: b("MUL", half(b, x), erfc(b, x, ROOT)),
    "x/2 * (1 + erf(x / sqrt 2))": lambda b, x: b(
        "MUL", half(b, x), plus_one(b, b("ERF", b("DIV", x, b.constant(math.sqrt(2)))))
    ),
    "x * (erf(x / sqrt 2) + 1) / 2": lambda b, x: half(
        b, b("MUL", x, plus_one(b, b("ERF", b("MUL", x, b.constant(ROOT)))))
    ),
    "x * (1/2 + erf/2)": lambda b, x: b(
        "MUL", b("ADD", half(b, b("ERF", b("MUL", x, b.constant(ROOT)))), b.constant(0.5)), x
    ),
}
APPROXIMATE = {
    "TensorFlow": lambda b, x: b("MUL", half(b, x), plus_one(b, tanh(b, x, cube(b, x)))),
    "cube as x * x^2": lambda b, x: b("MUL", half(b, x), plus_one(b, tanh(b, x, b("MUL", x, b("SQUARE", x))))),
    "x * (1 + c x^2)": lambda b, x: b(
        "MUL",
        half(b, x),
        plus_one(
            b,
            b(
                "TANH",
                b(
                    "MUL",
                    b.constant(SLOPE),
                    b("MUL", x, plus_one(b, b("MUL", b("SQUARE", x), b.constant(0.044715)))),
                ),
            ),
        ),
    ),
}
NEAR_MISSES = {
    "another slope": lambda b, x: b("MUL", half(b, x), erfc(b, x, 0.7)),
    "no half": lambda b, x: b("MUL", x, erfc(b, x, ROOT)),
    "the other sign": lambda b, x: b("MUL", half(b, x), plus_one(b, b("ERF", b("MUL", x, b.constant(-ROOT))))),
    "another input": lambda b, x: b("MUL", half(b, b.x(None, 64)), erfc(b, x, ROOT)),
    "another cubic": lambda b, x: b("MUL", half(b, x), plus_one(b, tanh(b, x, cube(b, x), 0.05))),
    "another tanh": lambda b, x: b("MUL", half(b, x), plus_one(b, tanh(b, x, cube(b, x), slope=0.8))),
    "a square": lambda b, x: b("MUL", half(b, x), plus_one(b, tanh(b, x, b("SQUARE", x)))),
    "an activation": lambda b, x: b("MUL", half(b, x), erfc(b, x, ROOT), activation="RELU"),
}


@pytest.mark.parametrize("spelling", EXACT)
def test_error_function(spelling):
    b = Building()
    graph = b.end(EXACT[spelling](b, b.x(None, 64)))
    assert len(rewritten(graph, gelu.run)) == 1
    assert names(graph) == ["GELU"]
    assert not graph.nodes[0].attributes.approximate


@pytest.mark.parametrize("spelling", APPROXIMATE)
def test_tanh(spelling):
    b = Building()
    graph = b.end(APPROXIMATE[spelling](b, b.x(None, 64)))
    assert len(rewritten(graph, gelu.run)) == 1
    assert names(graph) == ["GELU"]
    assert graph.nodes[0].attributes.approximate


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_near_misses(case):
    b = Building()
    graph = b.end(NEAR_MISSES[case](b, b.x(None, 64)))
    assert rewritten(graph, gelu.run) == []

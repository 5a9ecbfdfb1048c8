import numpy as np
import pytest

from converter.passes import hard_swish
from tests.converter.passes.building import Building, names, rewritten


def relu6(b, x):
    return b("RELU6", b("ADD", x, b.constant(3.0)))


SPELLINGS = {
    "Keras 3: x * (relu6(x + 3) / 6)": lambda b, x: b("MUL", x, b("DIV", relu6(b, x), b.constant(6.0))),
    "x * (relu6(x + 3) * (1/6))": lambda b, x: b("MUL", x, b("MUL", relu6(b, x), b.constant(1 / 6))),
    "(x * relu6(x + 3)) / 6": lambda b, x: b("DIV", b("MUL", x, relu6(b, x)), b.constant(6.0)),
    "relu6(x + 3) * x * (1/6)": lambda b, x: b("MUL", b("MUL", relu6(b, x), x), b.constant(1 / 6)),
    "(x / 6) * relu6(3 + x)": lambda b, x: b(
        "MUL", b("MUL", x, b.constant(1 / 6)), b("RELU6", b("ADD", b.constant(3.0), x))
    ),
    "x * clamp(x/6 + 1/2, 0, 1)": lambda b, x: b(
        "MUL",
        x,
        b("CLAMP", b("ADD", b("MUL", x, b.constant(1 / 6)), b.constant(0.5)), min=0.0, max=1.0),
    ),
    "clamp(x + 3, 0, 6) / 6 * x": lambda b, x: b(
        "MUL", b("DIV", b("CLAMP", b("SUB", x, b.constant(-3.0)), min=0.0, max=6.0), b.constant(6.0)), x
    ),
}

NEAR_MISSES = {
    "another offset": lambda b, x: b("MUL", x, b("DIV", b("RELU6", b("ADD", x, b.constant(2.5))), b.constant(6.0))),
    "another divisor": lambda b, x: b("MUL", x, b("DIV", relu6(b, x), b.constant(5.0))),
    "no divisor": lambda b, x: b("MUL", x, relu6(b, x)),
    "another input": lambda b, x: b("MUL", b.x(None, 64), b("DIV", relu6(b, x), b.constant(6.0))),
    "relu": lambda b, x: b("MUL", x, b("DIV", b("RELU", b("ADD", x, b.constant(3.0))), b.constant(6.0))),
    "an activation on top": lambda b, x: b("MUL", x, b("DIV", relu6(b, x), b.constant(6.0)), activation="RELU"),
    "hard sigmoid alone": lambda b, x: b("DIV", relu6(b, x), b.constant(6.0)),
    "tf_keras' hard sigmoid": lambda b, x: b(
        "MUL", x, b("CLAMP", b("ADD", b("MUL", x, b.constant(0.2)), b.constant(0.5)), min=0.0, max=1.0)
    ),
    "a vector": lambda b, x: b("MUL", x, b("DIV", relu6(b, x), b.constant(np.full(64, 6.0)))),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(spelling):
    b = Building()
    graph = b.end(SPELLINGS[spelling](b, b.x(None, 64)))
    assert len(rewritten(graph, hard_swish.run)) == 1
    assert names(graph) == ["HARD_SWISH"]


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_near_misses(case):
    b = Building()
    graph = b.end(NEAR_MISSES[case](b, b.x(None, 64)))
    assert rewritten(graph, hard_swish.run) == []


def test_what_others_read_stays():
    b = Building()
    x = b.x(None, 64)
    gate = b("MUL", relu6(b, x), b.constant(1 / 6))
    graph = b.end(b("MUL", x, gate), gate)
    rewritten(graph, hard_swish.run)
    assert sorted(names(graph)) == ["ADD", "HARD_SWISH", "MUL", "RELU6"]

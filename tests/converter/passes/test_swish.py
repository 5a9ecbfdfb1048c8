from converter.passes import swish
from tests.converter.passes.building import Building, names, rewritten


def test_either_order():
    b = Building()
    x = b.x(None, 64)
    graph = b.end(b("MUL", x, b("LOGISTIC", x), layer="swish"), b("MUL", b("LOGISTIC", x), x, layer="swish"))
    assert rewritten(graph, swish.run) == ["swish: recognised as SWISH"] * 2
    assert names(graph) == ["SWISH", "SWISH"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 64), b.x(None, 64)
    gate = b("LOGISTIC", x)
    graph = b.end(
        b("MUL", y, gate),
        b("MUL", gate, gate),
        b("MUL", x, gate, activation="RELU"),
        b("MUL", x, b("LOGISTIC", b("MUL", x, b.constant(1.702)))),
        b("ADD", x, gate),
    )
    assert rewritten(graph, swish.run) == []

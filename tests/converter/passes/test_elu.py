import pytest

from converter.passes import elu
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("above", ["ELU", "x"])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_a_scaled_elu_as_keras_spells_it(above, alpha):
    b = Building()
    x = b.x(None, 16)
    unit = b("ELU", x, alpha=1.0)
    test = b("GREATER", x, b.constant(0.0))
    chosen = b("SELECT_V2", test, unit if above == "ELU" else x, b("MUL", b.constant(alpha), unit), layer="elu")
    graph = b.end(chosen)
    assert rewritten(graph, elu.run) == [f"elu: recognised as ELU with alpha {alpha:g}"]
    assert names(graph) == ["ELU"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 16), b.x(None, 16)
    unit, other = b("ELU", x, alpha=1.0), b("ELU", x, alpha=0.3)
    half = b.constant(0.5)
    above = b("GREATER", x, b.constant(0.0))
    graph = b.end(
        b("SELECT_V2", b("GREATER", x, half), unit, b("MUL", unit, half)),
        b("SELECT_V2", b("GREATER", y, b.constant(0.0)), unit, b("MUL", unit, half)),
        b("SELECT_V2", above, b("MUL", unit, half), unit),
        b("SELECT_V2", above, unit, b("ADD", unit, half)),
        b("SELECT_V2", above, other, b("MUL", other, half)),
    )
    assert rewritten(graph, elu.run) == []

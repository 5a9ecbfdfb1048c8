import pytest

from converter.passes import affine_to_depthwise
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("shapes", [((4,), (4,)), ((1, 1, 4), ()), ((), (4,)), ((1, 1, 1, 4), (4,))])
@pytest.mark.parametrize("activation", ["NONE", "RELU"])
def test_a_batch_norm_on_its_own(shapes, activation):
    b = Building()
    x = b("MUL", b.x(None, 5, 6, 4), b.normal(*shapes[0]), layer="bn")
    graph = b.end(b("ADD", x, b.normal(*shapes[1]), layer="bn", activation=activation))
    assert len(rewritten(graph, affine_to_depthwise.run)) == 1
    assert names(graph) == ["DEPTHWISE_CONV_2D"]
    assert graph.nodes[0].attributes.activation == activation


def test_near_misses():
    b = Building()
    x = b.x(None, 5, 6, 4)
    shared = b("MUL", x, b.normal(4))
    graph = b.end(
        b("ADD", b("MUL", x, b.constant(2.0)), b.constant(1.0)),  # one number for all channels
        b("ADD", b("MUL", x, b.normal(6, 1)), b.normal(4)),  # another axis
        b("ADD", b("MUL", b.x(None, 6, 4), b.normal(4)), b.normal(4)),  # of rank 3
        b("ADD", b("MUL", x, b.normal(4), activation="RELU"), b.normal(4)),
        b("ADD", b("MUL", x, b.normal(4)), x),
        b("ADD", shared, b.normal(4)),
        shared,
        b("ADD", b("MUL", b.x(None, 5, 6, 1), b.normal(4)), b.normal(4)),  # makes channels
    )
    assert rewritten(graph, affine_to_depthwise.run) == []

import pytest

from converter.passes import matmul_to_fully_connected
from tests.converter.passes.building import Building, names, rewritten


@pytest.mark.parametrize("x", [(None, 6), (None, 5, 6), (None, 3, 5, 6)])
@pytest.mark.parametrize("adj_y", [False, True])
def test_a_constant_matrix(x, adj_y):
    b = Building()
    matrix = b.normal(4, 6) if adj_y else b.normal(6, 4)
    graph = b.end(b("BATCH_MATMUL", b.x(*x), matrix, adj_y=adj_y, layer="query"))
    assert rewritten(graph, matmul_to_fully_connected.run) == ["query: product with a constant became FULLY_CONNECTED"]
    assert names(graph) == ["FULLY_CONNECTED"]
    assert graph.nodes[0].inputs[1].shape == (4, 6)


def test_a_constant_with_leading_axes_of_1():
    b = Building()
    graph = b.end(b("BATCH_MATMUL", b.x(None, 5, 6), b.normal(1, 6, 4)))
    rewritten(graph, matmul_to_fully_connected.run)
    assert names(graph) == ["FULLY_CONNECTED"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 5, 6), b.x(3, 6)
    graph = b.end(
        b("BATCH_MATMUL", b.x(3, 5, 6), b.normal(3, 6, 4)),  # a matrix for each sample
        b("BATCH_MATMUL", y, b.normal(1, 6, 4)),  # gains an axis
        b("BATCH_MATMUL", x, b.normal(5, 4), adj_x=True),
        b("BATCH_MATMUL", b.normal(4, 5), x),
        b("BATCH_MATMUL", x, x, adj_y=True),
    )
    assert rewritten(graph, matmul_to_fully_connected.run) == []

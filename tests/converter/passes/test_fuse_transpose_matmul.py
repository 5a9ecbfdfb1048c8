import pytest

from converter.passes import fuse_transpose_matmul
from tests.converter.passes.building import Building, names, rewritten


def test_keys_of_an_attention():
    b = Building()
    query, key = b.x(None, 2, 6, 4), b.x(None, 2, 5, 4)
    graph = b.end(b("BATCH_MATMUL", query, b("TRANSPOSE", key, b.integers(0, 1, 3, 2))))
    rewritten(graph, fuse_transpose_matmul.run)
    assert names(graph) == ["BATCH_MATMUL"]
    assert graph.nodes[0].attributes.adj_y


def test_operands_that_are_turned_already():
    b = Building()
    x, y = b.x(None, 6, 4), b.x(None, 4, 5)
    turned = [b("TRANSPOSE", tensor, b.integers(0, 2, 1)) for tensor in (x, y)]
    graph = b.end(b("BATCH_MATMUL", *turned, adj_x=True, adj_y=True))
    rewritten(graph, fuse_transpose_matmul.run)
    assert names(graph) == ["BATCH_MATMUL"]
    assert not graph.nodes[0].attributes.adj_x
    assert not graph.nodes[0].attributes.adj_y


def test_heads_are_moved_without_turning_the_rows():
    b = Building()
    query, key = b.x(None, 2, 6, 4), b.x(None, 6, 2, 4)
    graph = b.end(b("BATCH_MATMUL", query, b("TRANSPOSE", key, b.integers(0, 2, 3, 1))))
    rewritten(graph, fuse_transpose_matmul.run)
    assert names(graph) == ["TRANSPOSE", "BATCH_MATMUL"]
    assert graph.nodes[0].inputs[1].value.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(("adj_x", "adj_y"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_transpose_behind(adj_x, adj_y):
    b = Building()
    x = b.x(None, *((4, 6) if adj_x else (6, 4)))
    y = b.x(None, *((5, 4) if adj_y else (4, 5)))
    product = b("BATCH_MATMUL", x, y, adj_x=adj_x, adj_y=adj_y)
    graph = b.end(b("TRANSPOSE", product, b.integers(0, 2, 1)))
    rewritten(graph, fuse_transpose_matmul.run)
    assert names(graph) == ["BATCH_MATMUL"]


def test_near_misses():
    b = Building()
    x, y = b.x(None, 6, 6), b.x(2, 6, 6)
    product = b("BATCH_MATMUL", x, x)
    graph = b.end(
        product,  # read by others too
        b("TRANSPOSE", product, b.integers(0, 2, 1)),
        b("BATCH_MATMUL", b("TRANSPOSE", y, b.integers(1, 0, 2)), b.normal(6, 6, 2)),  # rows stay rows
        b("BATCH_MATMUL", b("TRANSPOSE", y, b.integers(2, 1, 0)), b.normal(6, 2, 3)),
    )
    assert rewritten(graph, fuse_transpose_matmul.run) == []

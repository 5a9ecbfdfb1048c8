import numpy as np
import pytest

from converter.passes import merge_pools
from schema import Quantization
from tests.converter.passes.building import Building, names, rewritten


def pools(first, second, op="MAX_POOL_2D", shape=(13, 16, 3), **more):
    """Poolings of (filter, stride, padding)."""
    b = Building()
    y = b.x(None, *shape)
    for (k, s, padding), attributes in ((first, {}), (second, more)):
        sizes = {"filter_h": k, "filter_w": k, "stride_h": s, "stride_w": s}
        y = b(op, y, layer=f"pool{len(b.graph.nodes)}", padding=padding, **sizes, **attributes)
    return b.end(y)


@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize(("first", "second"), [((2, 2, "VALID"), (2, 2, "VALID")), ((3, 3, "VALID"), (2, 2, "VALID"))])
def test_windows_side_by_side(op, first, second):
    graph = pools(first, second, op, activation="RELU")
    assert rewritten(graph, merge_pools.run) == ["pool0 and pool1: two poolings became one"]
    (pool,) = graph.nodes
    assert pool.attributes.filter_h == first[0] + (second[0] - 1) * first[1]
    assert pool.attributes.activation == "RELU"


def test_padding_of_the_first():
    graph = pools((2, 2, "SAME"), (2, 2, "VALID"), shape=(11, 13, 3))
    rewritten(graph, merge_pools.run)
    (pool,) = graph.nodes
    assert (pool.attributes.padding, pool.attributes.pads) == ("EXPLICIT", (0, 1, 0, 1))


@pytest.mark.parametrize(("inner", "outer"), [("AVERAGE_POOL_2D", "MEAN"), ("MAX_POOL_2D", "REDUCE_MAX")])
def test_reductions_of_all(inner, outer):
    b = Building()
    pool = {"filter_h": 2, "filter_w": 3, "stride_h": 2, "stride_w": 3}
    graph = b.end(b(outer, b(inner, b.x(None, 8, 9, 4), **pool), b.integers(1, 2), keep_dims=True))
    rewritten(graph, merge_pools.run)
    assert names(graph) == [outer]


def test_near_misses():
    def stays(graph, left=0):
        before = names(graph)
        assert rewritten(graph, merge_pools.run) == []
        assert names(graph) == before
        assert len(merge_pools.survey(graph)) == left

    stays(pools((3, 1, "VALID"), (3, 1, "VALID")), left=1)  # 25 comparisons instead of 18
    stays(pools((2, 2, "VALID"), (3, 2, "SAME")))
    stays(pools((3, 2, "VALID"), (2, 2, "VALID"), "AVERAGE_POOL_2D"))  # windows overlap
    stays(pools((2, 2, "SAME"), (2, 2, "VALID"), "AVERAGE_POOL_2D", shape=(11, 13, 3)))
    stays(pools((2, 2, "SAME"), (2, 2, "VALID"), shape=(None, None, 3)))
    b = Building()
    y = b("AVERAGE_POOL_2D", b.x(None, 7, 8, 4), filter_h=2, filter_w=2, stride_h=2, stride_w=2)
    stays(b.end(b("MEAN", y, b.integers(1, 2))))  # a row of pixels is in no window


def test_integers():
    for op, count in (("MAX_POOL_2D", 1), ("AVERAGE_POOL_2D", 2)):
        graph = pools((2, 2, "VALID"), (2, 2, "VALID"), op)
        for tensor in graph.tensors():
            tensor.dtype, tensor.quantization = np.dtype(np.int8), Quantization(0.1, 4)
        rewritten(graph, merge_pools.run, tolerance=0)
        assert len(graph.nodes) == count

import numpy as np
import pytest

from converter.passes import split_low_rank
from tests.converter.passes.building import Building, names, rewritten


def of_rank(b: Building, rows, columns, rank):
    return b.rng.normal(size=(rows, rank)) @ b.rng.normal(size=(rank, columns))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40)])
def test_dense_layers(keep, shape):
    b = Building()
    kernel = b.constant(of_rank(b, *shape, 5))
    attributes = {"activation": "RELU", "keep_num_dims": keep}
    graph = b.end(b("FULLY_CONNECTED", b.x(None, 3, shape[1]), kernel, b.normal(shape[0]), layer="fc", **attributes))
    assert rewritten(graph, split_low_rank.run, tolerance=1e-6) == ["fc: kernel of rank 5 became two"]
    assert names(graph) == ["FULLY_CONNECTED"] * 2
    assert [node.inputs[1].shape for node in graph.nodes] == [(5, shape[1]), (shape[0], 5)]
    assert [node.attributes.activation for node in graph.nodes] == ["NONE", "RELU"]


@pytest.mark.parametrize("attributes", [{"padding": "SAME", "stride_h": 2}, {"dilation_w": 2, "activation": "RELU"}])
def test_convolutions_of_few_combinations_of_kernels(attributes):
    b = Building()
    kernel = of_rank(b, 24, 3 * 3 * 16, 4).reshape(24, 3, 3, 16)
    graph = b.end(b("CONV_2D", b.x(None, 9, 9, 16), b.constant(kernel), b.normal(24), layer="conv", **attributes))
    assert rewritten(graph, split_low_rank.run, tolerance=1e-6) == ["conv: kernel of rank 4 became two"]
    assert [node.inputs[1].shape for node in graph.nodes] == [(4, 3, 3, 16), (24, 1, 1, 4)]


def test_convolutions_of_few_combinations_of_channels():
    b = Building()
    kernel = of_rank(b, 24 * 9, 32, 4).reshape(24, 3, 3, 32)
    graph = b.end(b("CONV_2D", b.x(None, 9, 9, 32), b.constant(kernel), b.normal(24), padding="SAME", stride_w=2))
    rewritten(graph, split_low_rank.run, tolerance=1e-6)
    assert [node.inputs[1].shape for node in graph.nodes] == [(4, 1, 1, 32), (24, 3, 3, 4)]


def test_near_misses():
    b = Building()
    x = b.x(None, 40)
    almost = of_rank(b, 40, 40, 5) + 1e-4 * b.rng.normal(size=(40, 40))
    graph = b.end(
        b("FULLY_CONNECTED", x, b.normal(40, 40), None),
        b("FULLY_CONNECTED", x, b.constant(almost), None),
        b("FULLY_CONNECTED", x, b.constant(of_rank(b, 40, 40, 20)), None),  # nothing is saved
        b("FULLY_CONNECTED", x, b.constant(np.zeros((40, 40))), None),
    )
    assert rewritten(graph, split_low_rank.run) == []
    assert split_low_rank.survey(graph) == []


def test_pruned_kernels_whose_factors_are_larger_stay():
    b = Building()
    kernel = np.zeros((200, 200))
    kernel[::20] = np.where(b.rng.random((10, 200)) < 0.05, 1, 0)  # few rows, few ones
    graph = b.end(b("FULLY_CONNECTED", b.x(None, 200), b.constant(kernel), None, layer="fc"))
    assert rewritten(graph, split_low_rank.run) == []
    (left,) = split_low_rank.survey(graph)
    assert left.saving.macs > 0 > left.saving.weight_bytes


@pytest.mark.parametrize(("m", "n", "rank"), [(1, 1500, 1), (6, 6, 2), (40, 40, 2), (150, 7, 3), (64, 300, 20)])
def test_factors(m, n, rank, rng):
    matrix = (rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))).astype(np.float32).astype(float)
    found = split_low_rank.low_rank(matrix)
    if rank * (m + n) >= m * n or m * n < split_low_rank.LEAST:
        assert found is None
        return
    left, right = found
    assert left.shape == (m, rank)
    assert np.linalg.norm(left @ right - matrix) < 1e-6 * np.linalg.norm(matrix)

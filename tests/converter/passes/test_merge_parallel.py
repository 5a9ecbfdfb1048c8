import numpy as np
import pytest

from converter.passes import manager, merge_parallel
from schema import Constant, Tensor
from tests.converter.passes.building import Building, names, rewritten, stored
from tests.support.float_graphs import clustered


def siblings(b: Building, x, outs, kernel=1, **attributes):
    depth = x.shape[-1]
    return [
        b("CONV_2D", x, b.normal(n, kernel, kernel, depth), b.normal(n), layer=f"conv{n}", **attributes) for n in outs
    ]


@pytest.mark.parametrize("kernel", [1, 3])
def test_all_inputs(kernel):
    b = Building()
    parts = siblings(b, b.x(None, 6, 7, 8), (3, 5, 4), kernel, padding="SAME", stride_h=2, activation="RELU")
    graph = b.end(b("CONCATENATION", *parts, axis=-1))
    assert rewritten(graph, merge_parallel.run) == ["conv3 and conv5 and conv4: 3 layers on one input became one"]
    assert names(graph) == ["CONV_2D", "CONCATENATION"]
    manager.optimize(graph)
    assert names(graph) == ["CONV_2D"]
    assert graph.nodes[0].inputs[1].shape == (12, kernel, kernel, 8)


def test_neighbours_among_others():
    b = Building()
    x = b.x(None, 6, 7, 8)
    first, second, third, fourth = siblings(b, x, (3, 5, 4, 6))
    wide = b("CONV_2D", x, b.normal(2, 3, 3, 8), None, padding="SAME", layer="wide")
    graph = b.end(b("CONCATENATION", first, second, wide, third, fourth, axis=3))
    assert rewritten(graph, merge_parallel.run) == ["conv3 and conv5: 2 layers on one input became one"]
    assert rewritten(graph, merge_parallel.run) == ["conv4 and conv6: 2 layers on one input became one"]
    assert names(graph) == ["CONV_2D", "CONV_2D", "CONV_2D", "CONCATENATION"]


def test_dense_layers():
    b = Building()
    x = b.x(None, 5, 8)
    parts = [b("FULLY_CONNECTED", x, b.normal(n, 8), b.normal(n) if n == 2 else None) for n in (2, 3)]
    graph = b.end(b("CONCATENATION", *parts, axis=2))
    rewritten(graph, merge_parallel.run)
    assert names(graph) == ["FULLY_CONNECTED", "CONCATENATION"]


def test_stored_kernels_stay():
    b = Building()
    x, kernels = b.x(None, 4, 4, 8), []
    for scale in (None, b.positive(6).value):
        kernel = Tensor("kernel", np.float32)
        kernel.set_constant(Constant(b.rng.integers(-7, 8, (6, 1, 1, 8)).astype(np.int8), scale, 0))
        kernels.append(kernel)
    graph = b.end(b("CONCATENATION", *(b("CONV_2D", x, kernel, None) for kernel in kernels), axis=3))
    rewritten(graph, merge_parallel.run)
    joined = stored(graph.nodes[0].inputs[1])
    assert joined.values.dtype == np.int8
    assert joined.channel_scale.tolist() == [1] * 6 + stored(kernels[1]).channel_scale.tolist()


def test_two_codebooks_that_would_become_a_large_one_stay():
    b = Building()
    x = b.x(None, 2, 2, 256)
    kernels = [clustered(b.rng.normal(size=(64, 1, 1, 256)), 4) for _ in range(2)]
    graph = b.end(b("CONCATENATION", *(b("CONV_2D", x, kernel, None) for kernel in kernels), axis=3))
    assert rewritten(graph, merge_parallel.run) == []
    (left,) = merge_parallel.survey(graph)
    assert left.against == f"{-left.saving.weight_bytes} bytes more would be stored"


def test_near_misses():
    b = Building()
    x = b.x(None, 6, 6, 8)
    one, two = siblings(b, x, (3, 4))
    relu = b("CONV_2D", x, b.normal(4, 1, 1, 8), None, activation="RELU")
    shared, other = siblings(b, x, (3, 4))
    elsewhere = b("CONV_2D", b.x(None, 6, 6, 8), b.normal(4, 1, 1, 8), None)
    grouped = [b("CONV_2D", x, b.normal(4, 1, 1, 4), None) for _ in range(2)]
    graph = b.end(
        b("CONCATENATION", one, relu, two, axis=3),
        b("CONCATENATION", shared, other, axis=3),
        b("CONCATENATION", b("CONV_2D", x, b.normal(4, 1, 1, 8), None), elsewhere, axis=3),
        b("CONCATENATION", *grouped, axis=3),
        b("CONCATENATION", *siblings(b, x, (4, 4)), axis=1),
        shared,
    )
    assert rewritten(graph, merge_parallel.run) == []

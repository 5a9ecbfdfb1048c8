import pytest

from converter.passes import merge_sum
from tests.converter.passes.building import Building, names, rewritten
from tests.support.float_graphs import clustered


def branches(b: Building, first: dict, second: dict, kernels=(3, 1), shape=(7, 8, 6), **addition):
    x = b.x(None, *shape)
    parts = [
        b("CONV_2D", x, b.normal(5, k, k, 6), b.normal(5), layer=f"conv{i}", **attributes)
        for i, (k, attributes) in enumerate(zip(kernels, (first, second), strict=True))
    ]
    return b.end(b("ADD", *parts, **addition))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernels", [(3, 1), (1, 3), (5, 1), (4, 1), (3, 3)])
def test_same_padding(stride, kernels):
    attributes = {"padding": "SAME", "stride_h": stride, "stride_w": stride}
    graph = branches(Building(), attributes, attributes, kernels, activation="RELU")
    assert len(rewritten(graph, merge_sum.run)) == 1
    assert names(graph) == ["CONV_2D"]
    assert graph.nodes[0].attributes.activation == "RELU"
    assert graph.nodes[0].inputs[1].shape[1] == max(kernels)


def test_explicit_padding_and_dilation():
    first = {"padding": "EXPLICIT", "pads": (2, 2, 2, 2), "dilation_h": 2, "dilation_w": 2}
    graph = branches(Building(), first, {})
    rewritten(graph, merge_sum.run)
    assert names(graph) == ["CONV_2D"]


def test_dense_layers():
    b = Building()
    x = b.x(None, 6)
    graph = b.end(b("ADD", *(b("FULLY_CONNECTED", x, b.normal(5, 6), b.normal(5)) for _ in range(2))))
    rewritten(graph, merge_sum.run)
    assert names(graph) == ["FULLY_CONNECTED"]


def test_near_misses():
    same = {"padding": "SAME"}

    def stays(graph):
        before = names(graph)
        assert rewritten(graph, merge_sum.run) == []
        assert names(graph) == before

    stays(branches(Building(), same, same, (5, 3)))
    stays(branches(Building(), same | {"activation": "RELU"}, same, (3, 3)))
    stays(branches(Building(), same | {"dilation_h": 2}, same, (3, 3)))
    # the 1x1 kernel's pixel lies between taps
    stays(branches(Building(), {"padding": "EXPLICIT", "pads": (1, 1, 1, 1), "dilation_h": 2, "dilation_w": 2}, {},
                   (2, 1)))  # fmt: skip
    two = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    stays(branches(Building(), two, two, shape=(None, None, 6)))
    b = Building()
    x, y = b.x(None, 6), b.x(None, 6)
    one = b("FULLY_CONNECTED", x, b.normal(5, 6), None)
    stays(
        b.end(
            b("ADD", one, b("FULLY_CONNECTED", x, b.normal(5, 6), None)),  # read by others too
            b("ADD", one, one),
            b("ADD", *(b("FULLY_CONNECTED", z, b.normal(5, 6), None) for z in (x, y))),
        )
    )


def test_clustered_kernels_whose_sums_have_many_values_stay():
    b = Building()
    x = b.x(None, 128)
    kernels = [clustered(b.rng.normal(size=(128, 128)), 8) for _ in range(2)]
    graph = b.end(b("ADD", *(b("FULLY_CONNECTED", x, kernel, None) for kernel in kernels)))
    assert rewritten(graph, merge_sum.run) == []
    (left,) = merge_sum.survey(graph)
    assert left.against == f"{-left.saving.weight_bytes} bytes more would be stored"

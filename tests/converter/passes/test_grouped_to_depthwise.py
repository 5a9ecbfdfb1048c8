import numpy as np
import pytest

from converter.passes import grouped_to_depthwise
from schema.graph import Constant, Tensor
from tests.converter.passes.building import Building, names, rewritten, stored


@pytest.mark.parametrize("multiplier", [1, 2, 3])
def test_as_many_groups_as_channels(multiplier):
    b = Building()
    weights, bias = b.normal(4 * multiplier, 3, 2, 1), b.normal(4 * multiplier)
    conv = b("CONV_2D", b.x(None, 7, 6, 4), weights, bias, stride_h=2, padding="SAME", activation="RELU", layer="conv")
    graph = b.end(conv)
    assert rewritten(graph, grouped_to_depthwise.run) == ["conv: convolution in 4 groups became depthwise"]
    assert names(graph) == ["DEPTHWISE_CONV_2D"]


def test_stored_values_and_their_factors_stay():
    b = Building()
    values = b.rng.choice([-1.0, 0.0, 1.0], (4, 3, 3, 1)).astype(np.float32)
    weights = Tensor("kernel", np.float32, values.shape, constant=Constant(values, np.float32([1, -2, 3, 4]), 0))
    graph = b.end(b("CONV_2D", b.x(None, 5, 5, 4), weights))
    rewritten(graph, grouped_to_depthwise.run)
    constant = stored(graph.nodes[0].inputs[1])
    assert constant.axis == 3
    assert set(np.unique(constant.values)) == {-1.0, 0.0, 1.0}


def test_near_misses():
    b = Building()
    graph = b.end(
        b("CONV_2D", b.x(None, 5, 5, 4), b.normal(4, 3, 3, 2)),  # two groups
        b("CONV_2D", b.x(None, 5, 5, 1), b.normal(4, 3, 3, 1)),  # one channel
        b("CONV_2D", b.x(None, 5, 5, 4), b("EXP", b.normal(4, 3, 3, 1))),  # weights that are computed
    )
    assert rewritten(graph, grouped_to_depthwise.run) == []

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter.passes import manager
from schema.errors import ConversionError
from tests.converter.passes.building import Building, check_order, names, rewritten
from tests.converter.passes.random_graphs import assert_computes_the_same, random_graph


def mobile_block(b: Building):
    """Convolution, BatchNorm, hard-swish; depthwise, BatchNorm, ReLU6; and a branch that nothing needs."""
    x = b.x(None, 8, 8, 3)
    y = b("ADD", b("CONV_2D", x, b.normal(4, 3, 3, 3), layer="conv1"), b.normal(4), layer="conv1")
    y = b("ADD", b("MUL", y, b.positive(4), layer="conv1_bn"), b.normal(4), layer="conv1_bn")
    gate = b("DIV", b("RELU6", b("ADD", y, b.constant(3.0), layer="act"), layer="act"), b.constant(6.0), layer="act")
    y = b("MUL", y, gate, layer="act")
    b("NEG", b("SQUARE", y, layer="unused"), layer="unused")
    y = b("PAD", y, b.constant([[0, 0], [0, 1], [0, 1], [0, 0]], np.int32), layer="pad")
    y = b("DEPTHWISE_CONV_2D", y, b.normal(1, 3, 3, 4), stride_h=2, stride_w=2, layer="conv_dw")
    y = b("ADD", b("MUL", y, b.positive(4), layer="dw_bn"), b.normal(4), layer="dw_bn")
    return b.end(b("RELU6", y, layer="dw_relu"))


def test_a_block_and_its_explanation():
    graph = mobile_block(Building())
    explanation = None

    def run(graph):
        nonlocal explanation
        explanation = manager.optimize(graph)
        return []

    rewritten(graph, run, tolerance=5e-6)
    assert names(graph) == ["CONV_2D", "HARD_SWISH", "DEPTHWISE_CONV_2D"]
    assert [node.name for node in graph.nodes] == ["conv1", "act", "conv_dw"]
    assert explanation.of("fold_batch_norm") == ["conv1_bn folded into conv1", "dw_bn folded into conv_dw"]
    assert explanation.of("hard_swish") == ["act: recognised as HARD_SWISH"]
    text = str(explanation)
    assert text.splitlines()[0].startswith("15 nodes became 3 in ")
    assert "fold_batch_norm: 2 found\n  conv1_bn folded into conv1\n  dw_bn folded into conv_dw\n" in text
    assert "fuse_pad: 1 found\n  pad fused into conv_dw" in text
    assert "nothing found: " in text.splitlines()[-1]
    assert "gelu" in text.splitlines()[-1]


def test_progress_names_each_pass():
    seen = []
    manager.optimize(mobile_block(Building()), seen.append)
    assert seen[: len(manager.MAIN)] == manager.MAIN
    assert seen[-len(manager.LAST) :] == manager.LAST


def test_a_graph_with_nothing_to_do():
    b = Building()
    graph = b.end(b("TANH", b.x(None, 4)))
    explanation = manager.optimize(graph)
    assert explanation.changes == []
    assert names(graph) == ["TANH"]


def test_unused_inputs_stay_in_the_signature():
    b = Building()
    x, y = b.x(None, 4), b.x(None, 4)
    b("NEG", y)
    graph = b.end(b("TANH", x))
    manager.optimize(graph)
    assert graph.inputs == [x, y]
    assert names(graph) == ["TANH"]


def test_two_outputs_keep_names_and_order():
    b = Building()
    x = b("RELU", b.x(None, 4))
    second = b("MUL", b("ADD", x, b.constant(0.0)), b.constant(1.0))
    graph = b.end(b("NEG", x), second, names=["b", "a"])
    rewritten(graph, lambda g: [str(manager.optimize(g))])
    assert graph.output_names == ["b", "a"]
    assert names(graph) == ["RELU", "NEG"]


def test_rewriting_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(manager, "load", lambda name: lambda graph: ["turned it round"])
    b = Building()
    with pytest.raises(ConversionError, match="turned it round"):
        manager.optimize(b.end(b("TANH", b.x(None, 4))))


@given(seed=st.integers(0, 1 << 30), steps=st.integers(4, 24))
def test_random_graphs_compute_the_same(seed, steps):
    graph = random_graph(seed, steps)
    assert_computes_the_same(graph, np.random.default_rng(seed), manager.optimize)
    check_order(graph)

import numpy as np
import pytest

from converter.rewriter import Rewriter
from schema.ops.attributes import ArithmeticAttributes
from tests.converter.passes.building import Building, check_order, names


@pytest.fixture
def b():
    return Building()


def test_producers_and_consumers(b):
    x = b.x(None, 4)
    y = b("RELU", x)
    graph = b.end(b("ADD", y, y), b("NEG", y))
    rewriter = Rewriter(graph)
    relu, add, neg = graph.nodes
    assert rewriter.producer(y) is relu
    assert rewriter.producer(y, "RELU", "NEG") is relu
    assert rewriter.producer(y, "NEG") is None
    assert rewriter.producer(x) is None
    assert rewriter.producer(None) is None
    assert rewriter.consumers(y) == [add, neg]
    assert rewriter.only_consumer(y) is None
    assert rewriter.only_consumer(x) is relu


def test_an_output_has_no_only_consumer(b):
    y = b("RELU", b.x(None, 4))
    rewriter = Rewriter(b.end(y, b("NEG", y)))
    assert rewriter.only_consumer(y) is None
    assert rewriter.is_output(y)


def test_rewriting_in_place_drops_what_nobody_reads(b):
    x = b.x(None, 4)
    graph = b.end(b("MUL", x, b("LOGISTIC", b("NEG", x))))
    rewriter = Rewriter(graph)
    node = graph.nodes[-1]
    rewriter.rewrite(node, "SWISH", [x], None, "swish")
    rewriter.commit()
    assert names(graph) == ["SWISH"]
    assert node.name == "swish"
    assert rewriter.consumers(x) == [node]


def test_added_nodes_come_before_and_know_their_type(b):
    x = b.x(None, 4)
    graph = b.end(b("NEG", b("RELU", x)))
    rewriter = Rewriter(graph)
    node = graph.nodes[-1]
    first = rewriter.add("ADD", [node.inputs[0], b.normal(4)], ArithmeticAttributes(), before=node, name="new")
    second = rewriter.add("TANH", [first], before=node)
    rewriter.rewrite(node, inputs=[second])
    rewriter.commit()
    assert names(graph) == ["RELU", "ADD", "TANH", "NEG"]
    assert [n.name for n in graph.nodes[1:3]] == ["new", "neg_1"]
    assert second.shape == (None, 4)
    assert second.dtype == np.float32
    check_order(graph)


def test_absorbing_takes_over_the_output(b):
    y = b("RELU", b.x(None, 4))
    z = b("ADD", y, b.normal(4))
    graph = b.end(z)
    rewriter = Rewriter(graph)
    relu, add = graph.nodes
    rewriter.absorb(relu, add)
    rewriter.commit()
    assert graph.nodes == [relu]
    assert relu.outputs == [z] == graph.outputs
    assert rewriter.producer(z) is relu


def test_bypassing_inside_of_the_graph(b):
    y = b("RELU", b.x(None, 4))
    graph = b.end(b("TANH", b("NEG", y)))
    rewriter = Rewriter(graph)
    assert rewriter.bypass(graph.nodes[1], y)
    rewriter.commit()
    assert names(graph) == ["RELU", "TANH"]


def test_bypassing_before_an_output_keeps_the_output(b):
    y = b("RELU", b.x(None, 4))
    z = b("NEG", y)
    graph = b.end(b("TANH", y), z)
    rewriter = Rewriter(graph)
    assert rewriter.bypass(graph.nodes[1], y)
    rewriter.commit()
    assert names(graph) == ["RELU", "TANH"]
    assert graph.outputs[1] is z
    assert graph.nodes[0].outputs == [z]
    check_order(graph)


def test_bypassing_two_at_once(b):
    y = b("RELU", b.x(None, 4))
    graph = b.end(b("NEG", b("NEG", y)))
    rewriter = Rewriter(graph)
    assert rewriter.bypass(graph.nodes[2], y)
    rewriter.commit()
    assert names(graph) == ["RELU"]


@pytest.mark.parametrize("case", ["input", "constant", "output"])
def test_what_cannot_be_bypassed(b, case):
    x = b.x(None, 4)
    y = b("RELU", x)
    source = {"input": x, "constant": b.normal(2, 4), "output": y}[case]
    graph = b.end(y, b("NEG", source))
    rewriter = Rewriter(graph)
    assert not rewriter.bypass(graph.nodes[1], source)
    rewriter.commit()
    assert names(graph) == ["RELU", "NEG"]


def test_replacing_uses_leaves_outputs(b):
    x = b.x(None, 4)
    y, z = b("RELU", x), b("RELU", x)
    graph = b.end(b("NEG", z), y)
    rewriter = Rewriter(graph)
    rewriter.replace_uses(z, y)
    rewriter.commit()
    assert names(graph) == ["RELU", "NEG"]
    assert graph.outputs[1] is y


def test_constants_from_nodes(b):
    x = b.x(None, 4)
    y = b("NEG", b("NEG", b.normal(4)))
    graph = b.end(b("ADD", x, y))
    rewriter = Rewriter(graph)
    rewriter.make_constant(graph.nodes[1], [np.ones(4)])
    rewriter.commit()
    assert names(graph) == ["ADD"]
    assert y.value.tolist() == [1, 1, 1, 1]
    assert y.value.dtype == np.float32


def test_nodes_skips_what_is_gone(b):
    y = b("NEG", b("NEG", b("NEG", b.x(None, 4))))
    graph = b.end(y)
    rewriter = Rewriter(graph)
    seen = []
    for node in rewriter.nodes("NEG"):
        seen.append(node)
        follower = rewriter.only_consumer(node.outputs[0])
        if follower is not None:
            rewriter.absorb(node, follower)
    assert len(seen) == 2

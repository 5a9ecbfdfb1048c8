import numpy as np
import pytest

from converter.passes import fold_operands, manager
from schema import Graph, Node, Tensor, evaluate
from schema.inference import annotate
from schema.ops.attributes import FullyConnectedAttributes, IfAttributes, WhileAttributes
from tests.support import control_flow as made

X = np.array([1, 2, 4], np.float32)


def rewritten(graph: Graph, *arrays: np.ndarray) -> list[str]:
    expected = evaluate.run(graph, arrays)
    annotate(graph)
    lines = fold_operands.run(graph)
    annotate(graph)
    for found, wanted in zip(evaluate.run(graph, arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    return lines


def sums(used: bool = True) -> Graph:
    """(x, c) -> x + c, or x + x."""
    x, c = Tensor("x", np.float32, (3,)), Tensor("c", np.float32, (3,))
    node, y = made.binary("ADD", x, c if used else x)
    return made.graph([node], [x, c], [y])


def choosing(c: Tensor, *used: bool) -> Graph:
    condition, x, y = Tensor("c", np.bool_, ()), Tensor("x", np.float32, (3,)), Tensor("y", np.float32)
    attributes = IfAttributes(*(sums(each) for each in used))
    graph = made.graph([Node("IF", [condition, x, c], [y], attributes, "choice")], [condition, x], [y])
    if not c.is_constant:
        graph.inputs.append(c)
        graph.input_names.append("c")
    return graph


@pytest.mark.parametrize("condition", [True, False])
def test_constants_go_into_branches(condition):
    graph = choosing(made.constant([5, 6, 7]), True, False)
    assert rewritten(graph, np.array(condition), X) == ["choice: 1 operand moved into its graphs, or not needed there"]
    assert len(graph.nodes[0].inputs) == 2
    assert graph.nodes[0].attributes.then_branch.nodes[0].inputs[1].is_constant
    assert rewritten(graph, np.array(condition), X) == []


def test_what_no_branch_reads_goes():
    c = Tensor("c", np.float32, (3,))
    assert rewritten(choosing(c, False, False), np.array(True), X, X)
    assert rewritten(choosing(c, True, False), np.array(True), X, X) == []


def looping(c: Tensor, count: int, stays: bool = True, result: bool = False) -> Graph:
    """(i, x) -> x + c while i < count; c goes through the loop."""
    graph = made.looping(count, shape=(3,))
    (node,) = graph.nodes
    for inner in node.subgraphs.values():
        inner.inputs.append(Tensor("c", np.float32, (3,)))
        inner.input_names.append("c")
    body = node.attributes.body
    body.nodes[1].inputs[1] = body.inputs[2]
    body.outputs.append(body.inputs[2] if stays else body.outputs[1])
    body.output_names.append("c")
    node.inputs.append(c)
    node.outputs.append(Tensor("last", np.float32))
    if result:
        graph.outputs.append(node.outputs[2])
        graph.output_names.append("last")
    return graph


def test_constants_that_stay_go_into_loops():
    graph = looping(made.constant([5, 6, 7]), 4)
    assert rewritten(graph, np.int32(0), X) == ["loop: 1 operand moved into its graphs, or not needed there"]
    (node,) = graph.nodes
    assert len(node.inputs) == len(node.outputs) == len(node.attributes.body.outputs) == 2
    assert node.attributes.body.nodes[1].inputs[1].is_constant


def test_whoever_reads_what_stayed_reads_the_operand():
    graph = looping(made.constant([5, 6, 7]), 4)
    last, y = made.binary("MUL", graph.nodes[0].outputs[1], graph.nodes[0].outputs[2])
    graph.nodes.append(last)
    graph.outputs[1] = y
    assert rewritten(graph, np.int32(0), X)
    assert graph.nodes[1].inputs[1].is_constant


@pytest.mark.parametrize("fields", [{"stays": False}, {"result": True}])
def test_what_changes_or_leaves_stays(fields):
    graph = looping(made.constant([5, 6, 7]), 4, **fields)
    assert rewritten(graph, np.int32(0), X) == []


def test_a_loop_keeps_an_operand():
    x, y = Tensor("x", np.float32, (3,)), Tensor("y", np.float32)
    given, same = (Tensor("x", np.float32, (3,)) for _ in range(2))
    never = made.graph([], [given], [made.constant(False, np.bool_)])
    node = Node("WHILE", [x], [y], WhileAttributes(never, made.graph([], [same], [same])), "loop")
    last, z = made.binary("ADD", y, made.constant(1.0))
    assert rewritten(made.graph([node, last], [x], [z]), X) == []


def test_weights_inside_have_kernels(rng):
    """A dense layer whose weights came through the loop is one on constants, and the other rewrites work inside."""
    x, y = Tensor("x", np.float32, (None, 4)), Tensor("y", np.float32)
    graph = made.looping(3, made.doubling((None, 4)), (None, 4))
    (node,) = graph.nodes
    for inner in node.subgraphs.values():
        inner.inputs.append(Tensor("w", np.float32, (4, 4)))
        inner.input_names.append("w")
    body = node.attributes.body
    dense = Node("FULLY_CONNECTED", [body.inputs[1], body.inputs[2]], [y], FullyConnectedAttributes(), "dense")
    relu = Node("RELU", [y], [Tensor("r", np.float32)], None, "dense")
    body.nodes[1:] = [dense, relu]
    body.outputs = [body.outputs[0], *relu.outputs, body.inputs[2]]
    body.output_names.append("w")
    node.inputs.append(made.constant(rng.standard_normal((4, 4))))
    node.outputs.append(Tensor("w", np.float32))
    x = rng.standard_normal((2, 4)).astype(np.float32)
    expected = evaluate.run(graph, [np.int32(0), x])[1]
    explanation = manager.optimize(graph)
    np.testing.assert_allclose(evaluate.run(graph, [np.int32(0), x])[1], expected, rtol=1e-6)
    assert [n.op for n in body.nodes] == ["ADD", "FULLY_CONNECTED"]
    assert len(explanation.of("fuse_activation")) == 1

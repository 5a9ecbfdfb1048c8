import numpy as np
import pytest

from converter.passes import fold_branches, manager
from schema import Graph, Node, Quantization, Tensor, evaluate
from schema.inference import annotate
from schema.ops.attributes import ArithmeticAttributes, IfAttributes, WhileAttributes
from tests.support import control_flow as made

X = np.array([1, 2, 4], np.float32)


def rewritten(graph: Graph, *arrays: np.ndarray) -> list[str]:
    """The pass's lines, after comparing what the graph computes before and after."""
    expected = evaluate.run(graph, arrays)
    annotate(graph)
    lines = fold_branches.run(graph)
    annotate(graph)
    for found, wanted in zip(evaluate.run(graph, arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    return lines


def known(condition: bool) -> Graph:
    """x -> branching(condition, x) - 1."""
    graph = made.branching()
    graph.nodes[0].inputs[0] = made.constant(condition, np.bool_)
    graph.inputs, graph.input_names = graph.inputs[1:], graph.input_names[1:]
    last, y = made.binary("SUB", graph.outputs[0], made.constant(1.0))
    graph.nodes.append(last)
    graph.outputs = [y]
    return graph


@pytest.mark.parametrize(("condition", "op", "taken"), [(True, "ADD", "then"), (False, "MUL", "else")])
def test_the_branch_that_is_taken(condition, op, taken):
    graph = known(condition)
    assert rewritten(graph, X) == [f"choice: the condition is constant, {taken}_branch is taken"]
    assert [node.op for node in graph.nodes] == [op, "SUB"]


def test_a_result_that_leaves_the_graph_keeps_its_name():
    graph = known(True)
    graph.outputs = graph.nodes[0].outputs
    (y,) = graph.outputs
    rewritten(graph, X)
    assert graph.outputs == [y]
    assert graph.nodes[0].outputs == [y]


def test_conditions_that_are_computed_stay():
    graph = made.branching()
    assert rewritten(graph, np.array(True), X) == []
    assert [node.op for node in graph.nodes] == ["IF"]


def passing() -> Graph:
    """x -> (x, 3, x + x, x + x)."""
    x = Tensor("x", np.float32, (None,))
    node, twice = made.binary("ADD", x, x)
    return made.graph([node], [x], [x, made.constant(3.0), twice, twice])


def test_results_that_are_operands_constants_or_equal():
    x, outputs = Tensor("x", np.float32, (None,)), [Tensor("y", np.float32) for _ in range(4)]
    node = Node("IF", [made.constant(True, np.bool_), x], outputs, IfAttributes(passing(), passing()), "choice")
    graph = made.graph([node], [x], outputs)
    assert rewritten(graph, X)
    assert [n.op for n in graph.nodes] == ["ADD", "CAST", "CAST", "CAST"]


def test_results_that_nobody_reads_go():
    x, outputs = Tensor("x", np.float32, (None,)), [Tensor("y", np.float32) for _ in range(4)]
    node = Node("IF", [made.constant(True, np.bool_), x], outputs, IfAttributes(passing(), passing()), "choice")
    graph = made.graph([node], [x], outputs[2:3])
    rewritten(graph, X)
    assert [n.op for n in graph.nodes] == ["ADD"]


def test_integers_of_another_scale():
    """What the branch takes and gives stands for other numbers inside."""
    inside, outside = Quantization(0.5, 1), Quantization(0.25, -3)

    def branch() -> Graph:
        x, y = (Tensor("x", np.int8, (3,), inside) for _ in range(2))
        return made.graph([Node("ADD", [x, x], [y], ArithmeticAttributes())], [x], [y])

    x, y = Tensor("x", np.int8, (3,), outside), Tensor("y", np.int8, None, outside)
    node = Node("IF", [made.constant(False, np.bool_), x], [y], IfAttributes(branch(), branch()), "choice")
    assert rewritten(made.graph([node], [x], [y]), np.array([-7, 3, 20], np.int8))


def test_loops_that_never_run():
    graph = made.looping()
    inputs = [Tensor("i", np.int32, ()), Tensor("x", np.float32, (None,))]
    never = made.graph([], inputs, [made.constant(False, np.bool_)])
    graph.nodes[0].attributes = WhileAttributes(never, made.doubling())
    assert rewritten(graph, np.int32(0), X) == ["loop: the loop never runs"]
    assert [node.op for node in graph.nodes] == ["CAST", "CAST"]
    assert rewritten(made.looping(), np.int32(0), X) == []


def test_branches_in_branches():
    graph = made.nested(4)
    manager.optimize(graph)
    assert [node.op for node in graph.nodes] == ["ADD"]
    np.testing.assert_array_equal(evaluate.run(graph, [X])[0], X + 1)

"""IF and WHILE: what they compute, what holds of their graphs, and graphs that remember."""

import numpy as np
import pytest

import schema
from schema import FormatError, Graph, Model, Node, ShapeError, Tensor, evaluate, inference, limits, ops
from schema.errors import ExecutionError, InputError
from schema.graph import nested as all_graphs
from schema.ops.attributes import IfAttributes, WhileAttributes
from schema.reader import MAX_DEPTH
from tests.support import control_flow as made

X = np.array([1, 2, 4], np.float32)


def reread(graph: Graph) -> Graph:
    return schema.read(schema.write(Model([graph]))).graph


@pytest.mark.parametrize(("condition", "expected"), [(True, X + 1), (False, X * 3)])
def test_branches(condition, expected):
    for graph in (made.branching(), reread(made.branching())):
        np.testing.assert_array_equal(evaluate.run(graph, [np.array(condition), X])[0], expected)


@pytest.mark.parametrize(("start", "times"), [(0, 5), (3, 2), (5, 0), (9, 0)])
def test_loops(start, times):
    for graph in (made.looping(), reread(made.looping())):
        last, y = evaluate.run(graph, [np.int32(start), X])
        assert last == start + times
        np.testing.assert_array_equal(y, X * 2**times)


def test_loops_may_grow_what_they_carry():
    graph = reread(made.looping(3, made.growing()))
    assert inference.infer(graph).types[graph.outputs[1]].shape == (None,)
    np.testing.assert_array_equal(evaluate.run(graph, [np.int32(0), X])[1], np.tile(X, 8))


def test_shapes_that_do_not_change_are_known():
    for graph in (made.looping(), made.branching()):
        given = [() if tensor.dtype != np.float32 else (7,) for tensor in graph.inputs]
        assert inference.infer(graph, given).types[graph.outputs[-1]].shape == (7,)


def test_branches_of_other_shapes():
    x, y, condition = Tensor("x", np.float32, (3,)), Tensor("y", np.float32), Tensor("c", np.bool_, ())
    attributes = IfAttributes(made.applied("ADD", 1.0), made.applied("ADD", np.ones((2, 1))))
    graph = made.graph([Node("IF", [condition, x], [y], attributes)], [condition, x], [y])
    assert inference.infer(graph).types[y].shape is None
    assert evaluate.run(graph, [np.array(False), X])[0].shape == (2, 3)
    attributes = IfAttributes(made.applied("ADD", 1.0), made.applied("ADD", np.ones(1)))
    graph.nodes[0].attributes = attributes
    assert inference.infer(graph).types[y].shape == (3,)


def test_files_hold_each_graph_once():
    model = schema.read(schema.write(Model([made.nested(3)])))
    assert model.graphs == list(all_graphs(model.graph))
    assert len(model.graphs) == 7
    again = schema.read(schema.write(model))
    np.testing.assert_array_equal(evaluate.run(again.graph, [X])[0], X + 1)


def test_depth():
    np.testing.assert_array_equal(evaluate.run(reread(made.nested(MAX_DEPTH - 1)), [X])[0], X + 1)
    with pytest.raises(FormatError, match="nested deeper than 16"):
        reread(made.nested(MAX_DEPTH))


def test_a_graph_has_one_caller():
    branch = made.applied("ADD", 1.0)
    graph = made.branching()
    graph.nodes[0].attributes = IfAttributes(branch, branch)
    with pytest.raises(FormatError, match=r"else_branch: graph 1 is run by another node already"):
        reread(graph)


TWO = made.graph([], [Tensor("a", np.float32), Tensor("b", np.float32)], [Tensor("a", np.float32)])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (IfAttributes(made.applied("ADD", 1.0), TWO), "1 and 2 inputs"),
        (IfAttributes(made.applied("ADD", 1.0), made.doubling()), "1 and 2 inputs"),
        (IfAttributes(made.applied("ADD", 1.0), made.applied("ADD", 1, dtype=np.int32)), "input 0 is float32"),
        (IfAttributes(made.until(3), made.doubling()), "1 and 2 outputs"),
        (IfAttributes(), "give nothing"),
        (WhileAttributes(made.until(3), made.until(3)), "2 inputs and 1 outputs"),
        (WhileAttributes(made.doubling(), made.doubling()), "condition has 2 outputs"),
        (WhileAttributes(made.applied("ADD", 1.0), made.applied("ADD", 1.0)), "not one truth value"),
        (WhileAttributes(made.until(3), made.applied("ADD", 1.0)), "2 and 1 inputs"),
        (WhileAttributes(made.until(3, (4,)), made.doubling((3,))), r"condition: operand 1 has shape \(3,\), not \(4,"),
        (WhileAttributes(made.counter(), made.counter()), "state of its own"),
    ],
)
def test_graphs_that_do_not_fit_each_other(attributes, message):
    op = "IF" if isinstance(attributes, IfAttributes) else "WHILE"
    with pytest.raises(ShapeError, match=message):
        ops.get(op).check(attributes)


def test_a_body_that_does_not_fit_itself():
    body = made.growing()
    body.inputs[1].shape = (3,)
    with pytest.raises(ShapeError, match=r"the body: output 1 has shape \(6,\), not \(3,\)"):
        ops.get("WHILE").check(WhileAttributes(made.until(3), body))


def test_operands_that_do_not_fit():
    graph = made.branching((3,))
    graph.inputs[1].shape = (4,)
    with pytest.raises(ShapeError, match=r"IF 'choice': then_branch: operand 0 has shape \(4,\), not \(3,\)"):
        inference.infer(graph)
    graph.nodes[0].inputs.append(graph.inputs[1])
    with pytest.raises(ShapeError, match="2 operands for its 1 inputs"):
        inference.infer(graph)


@pytest.mark.parametrize("shape", [(2,), (1, 3)])
def test_conditions_are_single(shape):
    graph = made.branching()
    graph.inputs[0].shape = shape
    with pytest.raises(ShapeError, match="not one truth value"):
        inference.infer(graph)
    graph.inputs[0].shape = None
    with pytest.raises(ShapeError, match="not one truth value"):
        evaluate.run(graph, [np.ones(shape, bool), X])


def test_loops_without_an_end():
    graph = reread(made.looping(2**31 - 1))
    with limits.iterations(100), pytest.raises(ExecutionError, match="WHILE 'loop': the loop does not end"):
        evaluate.run(graph, [np.int32(0), X])
    with limits.iterations(5):
        evaluate.run(made.looping(), [np.int32(0), X])


def test_iterations_are_counted_together():
    body = made.doubling()
    inner = made.looping(3)
    zero = made.constant(0, np.int32)
    inner.nodes[0].inputs = [zero, body.inputs[1]]
    body.nodes = [body.nodes[0], inner.nodes[0]]
    body.outputs = [body.outputs[0], inner.outputs[1]]
    graph = made.looping(4, body)
    with limits.iterations(4 * (1 + 3)):
        np.testing.assert_array_equal(evaluate.run(graph, [np.int32(0), X])[1], X * 2**12)
    with limits.iterations(4 * (1 + 3) - 1), pytest.raises(ExecutionError):
        evaluate.run(graph, [np.int32(0), X])


def test_no_loop_runs_while_a_file_is_read():
    """Its operands are constants, so that other ops would be computed."""
    graph = made.looping(2**31 - 1)
    node = graph.nodes[0]
    node.inputs = [made.constant(0, np.int32), made.constant(X)]
    graph.inputs, graph.input_names = [], []
    assert reread(graph).nodes[0].op == "WHILE"


# ---- state ----


def test_a_graph_with_a_state_is_a_function():
    graph = reread(made.counter(1.0))
    assert (graph.argument_names, graph.result_names, graph.state_names) == (["x"], ["y"], ["total"])
    y, following = evaluate.run(graph, [X[:2], X[1:]])
    np.testing.assert_array_equal(y, X[:2] + X[1:])
    np.testing.assert_array_equal(following, y)


def test_state_is_kept_by_whoever_runs_the_graph():
    graph = reread(made.counter(1.0))
    state: dict[str, np.ndarray] = {}
    for times in (1, 2, 3):
        (y,) = evaluate.run(graph, [X[:2]], state=state)
        np.testing.assert_array_equal(y, 1 + times * X[:2])
        np.testing.assert_array_equal(state["total"], y)
    (y, node) = evaluate.run(graph, [X[:2]], [graph.outputs[1]], {})
    np.testing.assert_array_equal(node, 1 + X[:2])
    with pytest.raises(InputError, match=r"2 arrays for the 1 inputs \['x'\]"):
        evaluate.run(graph, [X[:2], X[:2]], state={})


def broken_counter(**changes) -> Graph:
    graph = made.counter()
    for name, value in changes.items():
        setattr(graph, name, value)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (broken_counter(state=[made.constant(np.zeros(3))]), r"state 'total': its initial value has shape \(3,\)"),
        (broken_counter(state=[made.constant([1, 2], np.int32)]), "its initial value is int32"),
        (broken_counter(state=[made.constant([1, 2])] * 3), "3 states of 2 inputs"),
        (broken_counter(state=[made.counter().inputs[1]]), "no constant|computed later"),
    ],
)
def test_states_that_do_not_fit(graph, message):
    with pytest.raises(FormatError, match=message):
        reread(graph)


def test_a_next_state_of_another_shape():
    graph = made.counter()
    node, following = made.binary("ADD", graph.inputs[0], made.constant(np.zeros((3, 1))))
    graph.nodes.append(node)
    graph.outputs[1] = following
    with pytest.raises(FormatError, match=r"state 'total': its next value has shape \(3, 2\), not \(2,\)"):
        reread(graph)

"""Branches, loops and state on the engine: as the references, plans kept, each session its own state."""

import json
import threading

import numpy as np
import pytest

import runtime
import schema
from runtime.__main__ import main
from runtime.steps import HostStep, NativeStep
from schema import Graph, InputError, MemoryLimitError, Model, Node, Tensor, evaluate
from schema.errors import ExecutionError
from schema.ops.attributes import AxisAttributes, FullyConnectedAttributes, WhileAttributes
from tests.support import control_flow as made

X = np.array([1, 2, 4], np.float32)
CARRIED = [("i", np.int32, ()), ("x", np.float32, (None,)), ("total", np.float32, (None,))]


def load(graph: Graph, **options) -> runtime.Model:
    return runtime.load(schema.write(Model([graph])), 1, **options)


def outputs(model: runtime.Model, *arrays) -> list[np.ndarray]:
    result = model(*arrays)
    return list(result.values()) if isinstance(result, dict) else [result]


@pytest.mark.parametrize(
    ("graph", "arrays"),
    [
        (made.branching(), [np.array(True), X]),
        (made.branching(), [np.array(False), X]),
        (made.branching(None), [np.array(False), X[None]]),
        (made.looping(), [np.int32(0), X]),
        (made.looping(), [np.int32(7), X]),
        (made.looping(3, made.growing()), [np.int32(0), X]),
        (made.nested(5), [X]),
    ],
)
def test_as_the_references(graph, arrays):
    model = load(graph)
    for _ in range(2):
        for given, expected in zip(outputs(model, *arrays), evaluate.run(graph, arrays), strict=True):
            assert given.dtype == expected.dtype
            np.testing.assert_array_equal(given, expected)


def test_what_a_loop_hands_on_unchanged():
    """Also from one run to the next, where it differs."""
    (i, x, total), (given, start, end) = ([Tensor(n, d, s) for n, d, s in made_of] for made_of in (CARRIED, CARRIED))
    step, following = made.binary("ADD", i, made.constant(1, np.int32))
    add, summed = made.binary("ADD", total, x)
    body = made.graph([step, add], [i, x, total], [following, x, summed])
    inputs = [Tensor(n, d, s) for n, d, s in CARRIED]
    test, less = made.binary("LESS", inputs[0], made.constant(5, np.int32))
    last = [Tensor(n, d) for n, d, _ in CARRIED]
    attributes = WhileAttributes(made.graph([test], inputs, [less]), body)
    graph = made.graph([Node("WHILE", [given, start, end], last, attributes, "loop")], [given, start, end], last)
    model = load(graph)
    for x in (X, 3 * X, X[:2]):
        arrays = [np.int32(0), x, np.ones_like(x)]
        for found, expected in zip(outputs(model, *arrays), evaluate.run(graph, arrays), strict=True):
            np.testing.assert_array_equal(found, expected)


def dense_loop(rng) -> Graph:
    """A dense layer, whose kernel is native, in the body of a loop."""
    body = made.doubling((None, 4))
    weights, y = made.constant(rng.standard_normal((4, 4)) / 2), Tensor("dense", np.float32)
    dense = Node("FULLY_CONNECTED", [body.inputs[1], weights], [y], FullyConnectedAttributes(), "dense")
    body.nodes[1:], body.outputs[1] = [dense], y
    return made.looping(6, body, (None, 4))


def test_plans_of_inner_graphs_are_native_and_kept(rng):
    graph = dense_loop(rng)
    model = load(graph)
    x = rng.standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_allclose(model(np.int32(0), x)["y1"], evaluate.run(graph, [np.int32(0), x])[1], rtol=1e-5)
    (step,) = model.plan([np.array(np.int32(0)), x]).steps
    assert isinstance(step, HostStep) and step.calls is not None
    plans = step.calls._plans["body"]._kept
    model(np.int32(0), x)
    assert len(plans) == 1
    assert any(isinstance(inner, NativeStep) for plan in plans.values() for inner in plan.steps)


def test_behind_sizes_that_data_decide(rng):
    """The loop, and what comes behind it, run where no plan can be laid out."""
    condition, x = Tensor("c", np.bool_, (None,)), Tensor("x", np.float32, (None,))
    rows, taken, places = Tensor("rows", np.int64), Tensor("taken", np.float32), Tensor("places", np.int64)
    loop = made.looping().nodes[0]
    loop.inputs = [made.constant(0, np.int32), taken]
    gather = schema.ops.get("GATHER").Attributes()
    nodes = [
        Node("WHERE", [condition], [places]),
        Node("RESHAPE", [places, made.constant([-1], np.int32)], [rows]),
        Node("GATHER", [x, rows], [taken], gather),
        loop,
    ]
    graph = made.graph(nodes, [condition, x], [loop.outputs[1]])
    for mask in ([True, False, True], [True, True, True], [False, False, False]):
        np.testing.assert_array_equal(load(graph)(np.array(mask), X), X[mask] * 32)


def test_iteration_limit():
    graph = made.looping(2**31 - 1)
    with pytest.raises(ExecutionError, match="WHILE 'loop': the loop does not end within the limit"):
        load(graph, iteration_limit=50)(np.int32(0), X)
    load(graph, iteration_limit=50)(np.int32(2**31 - 50), X)
    with pytest.raises(InputError, match="iteration_limit is 0"):
        load(graph, iteration_limit=0)


def test_memory_limit_holds_inside():
    with pytest.raises(MemoryLimitError):
        load(made.looping(40, made.growing()), memory_limit=1 << 16)(np.int32(0), X)


def test_interrupted_between_iterations(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("schema.limits.count_iteration", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load(made.looping(2**31 - 1))(np.int32(0), X)


# ---- state ----


def test_state_is_kept_and_reset():
    model = load(made.counter(1.0))
    assert [str(info) for info in model.inputs] == ["x: float32 (2)"]
    assert [info.name for info in model.outputs] == ["y"]
    for times in (1, 2, 3):
        np.testing.assert_array_equal(model(X[:2]), 1 + times * X[:2])
    np.testing.assert_array_equal(model.state["total"], 1 + 3 * X[:2])
    model.reset_state()
    np.testing.assert_array_equal(model.state["total"], [1, 1])
    np.testing.assert_array_equal(model(X[:2]), 1 + X[:2])


def test_sessions_have_states_of_their_own():
    data = schema.write(Model([made.counter()]))
    a, b = runtime.load(data), runtime.load(data)
    for _ in range(3):
        a(X[:2])
    np.testing.assert_array_equal(b(X[:2]), X[:2])
    np.testing.assert_array_equal(a(X[:2]), 4 * X[:2])


def test_calls_from_threads_take_turns():
    model = load(made.counter())
    workers = [threading.Thread(target=lambda: [model(X[:2]) for _ in range(50)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(model.state["total"], 200 * X[:2])


def test_a_call_that_fails_leaves_the_state():
    graph = made.counter()
    loop = made.looping(2**31 - 1).nodes[0]
    loop.inputs = [made.constant(0, np.int32), graph.outputs[1]]
    graph.nodes.append(loop)
    graph.outputs[1] = loop.outputs[1]
    model = load(graph, iteration_limit=3)
    with pytest.raises(ExecutionError):
        model(X[:2])
    np.testing.assert_array_equal(model.state["total"], [0, 0])


def test_a_state_of_a_size_that_only_running_tells():
    graph = made.counter()
    rows, places = Tensor("rows", np.int64), Tensor("places", np.int64)
    gather, taken = schema.ops.get("GATHER").Attributes(), Tensor("taken", np.float32)
    graph.nodes += [
        Node("WHERE", [graph.outputs[1]], [places]),
        Node("RESHAPE", [places, made.constant([-1], np.int32)], [rows]),
        Node("GATHER", [graph.outputs[1], rows], [taken], gather),
    ]
    graph.outputs[1] = taken
    model = load(graph)
    model(X[:2])
    with pytest.raises(ExecutionError, match=r"state 'total' has shape \(1,\), not \(2,\)"):
        model(np.array([-1, 0], np.float32))
    np.testing.assert_array_equal(model.state["total"], X[:2])


def test_a_state_that_grows_from_nothing():
    rows, x, joined = Tensor("rows", np.float32, (None, 3)), Tensor("x", np.float32, (1, 3)), Tensor("j", np.float32)
    join = Node("CONCATENATION", [rows, x], [joined], AxisAttributes(0), "join")
    twice, y = made.binary("MUL", joined, made.constant(2.0))
    nothing = made.constant(np.zeros((0, 3)))
    model = load(made.graph([join, twice], [x, rows], [y, joined], state=[nothing]))
    for count in (1, 2, 3):
        np.testing.assert_array_equal(model(X[None]), np.tile(2 * X, (count, 1)))
    model.reset_state()
    assert model.state["x1"].shape == (0, 3)


# ---- the command line ----


def test_inspect_shows_what_is_inside(tmp_path, capsys):
    path = tmp_path / "m.xnn"
    path.write_bytes(schema.write(Model([made.looping()])))
    assert main(["inspect", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = printed["nodes"]
    assert sum(row["bytes"] for row in rows) + printed["besides"] == path.stat().st_size
    assert sum(row["bytes"] for row in rows) > 0
    layers = ["loop", "loop/condition: less", "loop/body: add", "loop/body: add"]
    assert [row["layer"] for row in rows] == layers
    path.write_bytes(schema.write(Model([made.counter()])))
    assert main(["inspect", str(path)]) == 0
    assert "state  total: float32 (2)" in capsys.readouterr().out


def test_profile_and_run(tmp_path, capsys):
    path = tmp_path / "m.xnn"
    path.write_bytes(schema.write(Model([made.looping(shape=(3,))])))
    assert main(["profile", str(path), "--runs", "2", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (row["layer"], row["kernel"]) == ("loop", "graphs")
    path.write_bytes(schema.write(Model([made.counter()])))
    assert main(["profile", str(path), "--runs", "2"]) == 0
    assert main(["bench", str(path), "--runs", "2"]) == 0

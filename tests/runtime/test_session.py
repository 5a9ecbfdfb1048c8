"""The API of a loaded model: how it is called, what it answers, what it refuses."""

import threading

import numpy as np
import pytest

import runtime
import schema
from schema import Graph, Model, Node, Quantization, Tensor
from schema.errors import FormatError, InputError, ShapeError
from schema.ops import attributes as a


def dense(rng, name, units, inputs):
    return Tensor.from_array(name, rng.standard_normal((units, inputs)).astype(np.float32))


@pytest.fixture
def two_by_two(rng):
    """Inputs left (?, 4), right (?, 4); outputs 'b' = left + right, 'a' = left * right."""
    left, right = (Tensor(n, np.float32, (None, 4)) for n in ("left", "right"))
    total, product = Tensor("s", np.float32), Tensor("p", np.float32)
    nodes = [
        Node("ADD", [left, right], [total], a.ArithmeticAttributes(), "add"),
        Node("MUL", [left, right], [product], a.ArithmeticAttributes(), "mul"),
    ]
    graph = Graph(nodes, [left, right], ["left", "right"], [total, product], ["b", "a"])
    return runtime.load(schema.write(Model([graph])), threads=1)


def test_ways_to_call(two_by_two, rng):
    x, y = rng.standard_normal((2, 3, 4)).astype(np.float32)
    for result in (
        two_by_two(x, y),
        two_by_two([x, y]),
        two_by_two({"right": y, "left": x}),
        two_by_two(right=y, left=x),
        two_by_two(x, right=y),
        two_by_two.predict(x, y, batch_size=2),
    ):
        assert list(result) == ["b", "a"]
        np.testing.assert_array_equal(result["b"], x + y)
        np.testing.assert_array_equal(result["a"], x * y)


def test_lists_are_taken_as_the_inputs_dtype(two_by_two):
    assert two_by_two([[1, 2, 3, 4]], [[1, 1, 1, 1]])["b"].tolist() == [[2, 3, 4, 5]]


def test_metadata(two_by_two):
    left, right = two_by_two.inputs
    assert (left.name, left.shape, left.dtype, left.scale) == ("left", (None, 4), np.float32, None)
    assert [o.name for o in two_by_two.outputs] == ["b", "a"]
    assert two_by_two.outputs[0].shape == (None, 4)
    assert str(right) == "right: float32 (?, 4)"


def test_quantized_inputs_show_their_scale():
    x, y = Tensor("x", np.int8, (None, 2), Quantization(0.5, 3)), Tensor("y", np.float32)
    model = runtime.load(schema.write(Model([Graph([Node("DEQUANTIZE", [x], [y])], [x], ["x"], [y], ["y"])])))
    assert (model.inputs[0].scale, model.inputs[0].zero_point) == (0.5, 3)
    np.testing.assert_array_equal(model(np.array([[3, 5]], np.int8)), [[0, 1]])


X = np.zeros((2, 4), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((X,), "'right' is missing"),
        ((X, X, X), "3 arrays for the 2 inputs"),
        (({"left": X, "wrong": X},), "no input is called 'wrong'"),
        ((X, X.astype(np.float64)), r"right: float32.*float64; pass x.astype\('float32'\)"),
        ((X, X[:, :3]), r"right: float32 \(\?, 4\): the array has shape \(2, 3\)"),
        ((X, X[0]), r"a single sample needs a batch axis: x\[None\]"),
        ((X[:0], X[:0]), "empty"),
        ((X, [["a", "b", "c", "d"]]), "right"),
        ((X, np.array(["a"])), "right"),
    ],
)
def test_wrong_inputs_are_named(two_by_two, arrays, message):
    with pytest.raises(InputError, match=message):
        two_by_two(*arrays)


def test_shapes_that_do_not_fit_each_other_name_the_node(two_by_two):
    with pytest.raises(ShapeError, match="ADD 'add'"):
        two_by_two(X, np.zeros((3, 4), np.float32))


def test_what_was_called_before_changes_nothing():
    """The shape and dtype of the last call are not checked again; others are."""
    x, y = Tensor("x", np.float32, (None, 4)), Tensor("y", np.float32)
    model = runtime.load(schema.write(Model([Graph([Node("NEG", [x], [y])], [x], ["x"], [y], ["y"])])), threads=1)
    for rows in (2, 2, 3, 3, 2):
        array = np.arange(4.0 * rows, dtype=np.float32).reshape(rows, 4)
        np.testing.assert_array_equal(model(array), -array)
        np.testing.assert_array_equal(model(array[:, ::-1]), -array[:, ::-1])
        for wrong in (array.astype(np.float64), array.astype(array.dtype.newbyteorder()), array[:, :3], array[:0]):
            with pytest.raises(InputError):
                model(wrong)


def test_predict_counts_samples(two_by_two):
    with pytest.raises(InputError, match="same number of samples"):
        two_by_two.predict(X, X[:1])
    with pytest.raises(InputError, match="batch_size"):
        two_by_two.predict(X, X, batch_size=0)


def test_load_refuses(tmp_path):
    with pytest.raises(FormatError):
        runtime.load(b"not a model")
    with pytest.raises(FormatError, match="nowhere"):
        runtime.load(tmp_path / "nowhere.xnn")
    with pytest.raises(InputError, match="threads"):
        runtime.Model(Model([Graph()]), threads=0)


def test_plans_are_kept_for_recent_shapes(two_by_two):
    arrays = [X, X]
    plan = two_by_two.plan(arrays)
    assert two_by_two.plan(arrays) is plan
    for n in range(3, 12):
        two_by_two(np.zeros((n, 4), np.float32), np.zeros((n, 4), np.float32))
    assert two_by_two.plan(arrays) is not plan


def test_outputs_are_the_callers_own(two_by_two):
    first = two_by_two(X + 1, X)["b"]
    two_by_two(X + 5, X)
    assert (first == 1).all()


def test_many_threads_call_one_model(two_by_two):
    """Each caller gets the answer to its own question."""
    wrong = []

    def caller(number):
        x = np.full((2, 4), number, np.float32)
        for _ in range(50):
            if not (two_by_two(x, x)["b"] == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nodes_without_kernels_run_by_reference(rng):
    """Kernels and references take turns in one plan."""
    x, floor, y, z = Tensor("x", np.float32, (None, 6)), *(Tensor("t", np.float32) for _ in range(3))
    nodes = [
        Node("RELU", [x], [y], None, "relu"),
        Node("FLOOR", [y], [floor], None, "floor"),
        Node("ADD", [floor, x], [z], a.ArithmeticAttributes(), "add"),
    ]
    model = runtime.load(schema.write(Model([Graph(nodes, [x], ["x"], [z], ["z"])])))
    value = rng.standard_normal((3, 6)).astype(np.float32) * 4
    np.testing.assert_array_equal(model(value), np.floor(np.maximum(value, 0)) + value)


def test_sizes_that_depend_on_data(rng):
    """RANGE(0, n) with n computed from the data: what follows cannot be planned."""
    x, n, out, doubled = (
        Tensor("x", np.int32, (None,)),
        Tensor("n", np.int32),
        Tensor("r", np.int32),
        Tensor("d", np.int32),
    )
    zero, one = (Tensor.from_array("c", np.int32(v)) for v in (0, 1))
    axes = Tensor.from_array("axes", np.array([0], np.int32))
    nodes = [
        Node("REDUCE_MAX", [x, axes], [n], a.ReduceAttributes(), "max"),
        Node("RANGE", [zero, n, one], [out], None, "range"),
        Node("ADD", [out, one], [doubled], a.ArithmeticAttributes(), "add"),
    ]
    model = runtime.load(schema.write(Model([Graph(nodes, [x], ["x"], [doubled], ["y"])])))
    assert model(np.array([1, 4, 2], np.int32)).tolist() == [1, 2, 3, 4]
    assert model(np.array([1, 2, 0], np.int32)).tolist() == [1, 2]


def test_inputs_and_constants_may_be_outputs(rng):
    x = Tensor("x", np.float32, (None, 2))
    constant = Tensor.from_array("c", np.arange(3, dtype=np.float32))
    model = runtime.load(schema.write(Model([Graph([], [x], ["x"], [x, constant], ["same", "constant"])])))
    result = model(np.ones((1, 2), np.float32))
    assert result["same"].tolist() == [[1, 1]]
    assert result["constant"].tolist() == [0, 1, 2]

"""Models with branches and loops through the whole conversion: what is quantized, stored and reported of them."""

import keras
import numpy as np
import pytest

import converter
import runtime
from schema import InputError, evaluate
from schema.graph import all_nodes
from tests.support.tflite_variables import counting


class Repeated(keras.layers.Layer):
    def build(self, shape):
        self.kernel = self.add_weight(shape=(64, 64), initializer="glorot_uniform", name="kernel")
        super().build(shape)

    def call(self, x):
        ops = keras.ops
        y = ops.cond(ops.sum(x) > 0, lambda: ops.matmul(x, self.kernel), lambda: -x)
        return ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, ops.tanh(ops.matmul(v, self.kernel))), (0, y))[1]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(20)
    inputs = keras.Input((16,))
    hidden = Repeated(name="repeated")(keras.layers.Dense(64, name="first")(inputs))
    return keras.Model(inputs, keras.layers.Dense(4, name="last")(hidden))


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(20).standard_normal((64, 16)).astype(np.float32)


@pytest.mark.parametrize(
    ("method", "tolerance", "calibrated"),
    [("none", 1e-5, False), ("float16", 1e-2, False), ("int8-weights", 2e-2, False), ("int8", 0.1, True)],
)
def test_methods(model, x, method, tolerance, calibrated):
    result = converter.convert(model, method, x if calibrated else None)
    expected = np.asarray(model(x))
    found = runtime.load(result.bytes, 1)(x)
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    ops = [node.op for node in result.report.graph.nodes if node.op in ("IF", "WHILE")]
    assert ops == ["IF", "WHILE"]


def test_weights_inside_are_stored_in_fewer_bits(model):
    plain, half, small = (len(converter.convert(model, method).bytes) for method in ("none", "float16", "int8-weights"))
    assert half < 0.7 * plain
    assert small < 0.5 * plain


def test_layers_inside_stay_as_they_are_where_asked(model):
    graph = converter.convert(model, "float16", keep_float="repeated").report.graph
    inside = [t for node in all_nodes(graph) if node.name == "repeated" for t in node.inputs if t is not None]
    stored = {t.constant.values.dtype for t in inside if t.is_constant and t.dtype == np.float32}
    assert stored == {np.dtype(np.float32)}


def test_int8_around_float_inside(model, x):
    graph = converter.convert(model, "int8", x).report.graph
    dense = [node for node in graph.nodes if node.op == "FULLY_CONNECTED"]
    assert {node.inputs[0].dtype for node in dense} == {np.dtype(np.int8)}
    assert all(t.dtype != np.int8 for node in graph.nodes if node.op in ("IF", "WHILE") for t in node.inputs)


def test_the_report_counts_what_is_inside(model):
    report = converter.convert(model).report
    (layer,) = [layer for layer in report.layers if layer.name == "repeated"]
    assert layer.parameters > 2 * 64 * 64
    assert report.nodes == len(list(all_nodes(report.graph)))
    assert "repeated" in str(report)


def test_what_is_remembered():
    result = converter.convert(counting().pack())
    assert "state 'v': float32[2]" in str(result.report)
    with pytest.raises(InputError, match=r"'v': a model that remembers something .* cannot be calibrated"):
        converter.convert(counting().pack(), "int8", np.ones((4, 2), np.float32))
    state: dict[str, np.ndarray] = {}
    graph = converter.convert(counting().pack(), "float16").report.graph
    for _ in range(2):
        evaluate.run(graph, [np.ones(2, np.float32)], state=state)
    np.testing.assert_array_equal(state["v"], [3, 4])

"""What recurrent layers make of their inputs, for all steps at once before the loop."""

import importlib

import numpy as np
import pytest

import converter
import runtime


def ops(graph):
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
@pytest.mark.parametrize("layer", ["LSTM", "GRU", "SimpleRNN"])
def test_products_of_inputs_are_made_before_the_loop(kind, layer, rng):
    keras = importlib.import_module(kind)
    keras.utils.set_random_seed(5)
    inputs = keras.layers.Input((None, 8))
    cell = getattr(keras.layers, layer)(5, return_sequences=True, bias_initializer="random_normal", name="it")
    model = keras.Model(inputs, cell(inputs))
    result = converter.convert(model)
    (loop,) = [node for node in result.report.graph.nodes if node.op == "WHILE"]
    assert ops(result.report.graph).count("FULLY_CONNECTED") == 1
    assert ops(loop.attributes.body).count("FULLY_CONNECTED") == 1
    adds = ops(loop.attributes.body).count("ADD")
    assert result.report.explanation.of("hoist_from_loops") == ["it: 8 inputs of all steps multiplied at once"]
    if layer == "LSTM":  # of counters, of the products, of the state: not of the bias
        assert adds == {"keras": 4, "tf_keras": 3}[kind]
    x = rng.normal(size=(3, 7, 8)).astype(np.float32)
    np.testing.assert_allclose(runtime.load(result.bytes)(x), np.asarray(model(x)), atol=2e-6)


def test_what_the_loop_changes_stays(rng):
    import keras
    from keras import ops as K

    @keras.saving.register_keras_serializable("tests")
    class Doubling(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(4, 4), name="kernel")

        def call(self, x):
            def body(i, x, total):
                return i + 1, 2 * x, total + K.matmul(K.take(x, i, axis=0), self.kernel)

            _, _, total = K.while_loop(lambda i, x, t: i < 3, body, (0, x, K.zeros((2, 4))))
            return total + K.zeros_like(x[0])

    inputs = keras.Input((2, 4), batch_size=3)
    model = keras.Model(inputs, Doubling()(inputs))
    result = converter.convert(model)
    assert not result.report.explanation.of("hoist_from_loops")
    x = rng.normal(size=(3, 2, 4)).astype(np.float32)
    np.testing.assert_allclose(runtime.load(result.bytes)(x), np.asarray(model(x)), atol=1e-5)


def test_an_activation_stays_behind_its_bias(rng):
    import keras

    @keras.saving.register_keras_serializable("tests")
    class Cell(keras.layers.Layer):
        state_size = 4

        def build(self, shape):
            self.dense = keras.layers.Dense(4, "relu", bias_initializer="random_normal")
            self.dense.build(shape)

        def call(self, x, states):
            total = states[0] + self.dense(x)
            return total, [total]

    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, keras.layers.RNN(Cell(), return_sequences=True)(inputs))
    result = converter.convert(model)
    assert ops(result.report.graph).count("FULLY_CONNECTED") == 1
    x = rng.normal(size=(3, 5, 8)).astype(np.float32)
    np.testing.assert_allclose(runtime.load(result.bytes)(x), np.asarray(model(x)), atol=1e-5)

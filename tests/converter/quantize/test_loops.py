"""Recurrent layers in integers, by calibration: int16 in their loops."""

import importlib

import numpy as np
import pytest

import converter
import runtime
from schema import evaluate, fixedpoint

TOLERANCE = 40  # dB; what 8 bits leave of a state is some 30


def stacked(L, x):
    return L.GRU(6, name="second")(L.LSTM(12, return_sequences=True, name="it")(x))


def handed_on(L, x):
    """States that begin with another layer's, and are results."""
    _, h, c = L.LSTM(12, return_state=True, name="first")(x)
    return L.Concatenate()(L.LSTM(12, return_state=True, name="it")(x, initial_state=[3 * h, c]))


CASES = {
    "LSTM": lambda L, x: L.LSTM(12, return_sequences=True, name="it")(x),
    "GRU": lambda L, x: L.GRU(12, return_sequences=True, name="it")(x),
    "GRU that resets before": lambda L, x: L.GRU(12, reset_after=False, go_backwards=True, name="it")(x),
    "both directions": lambda L, x: L.Bidirectional(L.SimpleRNN(12), name="it")(x),
    "stacked": stacked,
    "states": handed_on,
    "masked": lambda L, x: L.Bidirectional(L.GRU(12, return_sequences=True), name="it")(L.Masking()(x)),
    "relu": lambda L, x: L.SimpleRNN(12, activation="relu", name="it")(x),
    "hard gates": lambda L, x: L.LSTM(12, recurrent_activation="hard_sigmoid", name="it")(x),
    "convolutions": lambda L, x: L.ConvLSTM1D(3, 3, name="it")(L.Reshape((10, 8, 1))(x)),
    "cells": lambda L, x: L.RNN([L.LSTMCell(6), L.GRUCell(5)], name="it")(x),
}


def zeros_for_masked(L, x):
    return L.LSTM(12, return_sequences=True, zero_output_for_mask=True, name="it")(L.Masking()(x))


def model_of(kind, build):
    keras = importlib.import_module(kind)
    keras.utils.set_random_seed(9)
    inputs = keras.layers.Input((10, 8))
    return keras.Model(inputs, build(keras.layers, inputs))


def samples(rng):
    x = rng.normal(size=(64, 10, 8)).astype(np.float32)
    x[::2, 7:] = 0
    return x


def signal_to_noise(expected, got):
    return 10 * np.log10((expected**2).sum() / ((got - expected) ** 2).sum())


def dtypes(graph):
    return {str(tensor.dtype) for tensor in graph.tensors()}


def assert_integers(model, x, least=TOLERANCE, **options):
    """Loops without a float, the reference's bits, and an accuracy that no state of 8 bits has."""
    result = converter.convert(model, quantize="int8", calibration=x[16:], **options)
    graph, engine = result.report.graph, runtime.load(result.bytes)
    for loop in [node for node in graph.nodes if node.op == "WHILE"]:
        for part in loop.subgraphs.values():
            assert dtypes(part) <= {"int8", "int16", "int64", "int32", "bool"}
    with fixedpoint.requantization("FP32_ROUND_EVEN"):
        (reference,) = evaluate.run(graph, [x[:16]])
    got = engine(x[:16])
    np.testing.assert_array_equal(got, reference)
    noise = signal_to_noise(model.predict(x[:16], verbose=0), got)
    assert noise > least
    return result


@pytest.mark.parametrize(
    ("kind", "case"),
    [*(("keras", case) for case in CASES), *(("tf_keras", case) for case in ("LSTM", "GRU", "masked", "hard gates"))],
)
def test_loops_of_recurrent_layers_have_integers_alone(kind, rng, case):
    result = assert_integers(model_of(kind, CASES[case]), samples(rng))
    assert {row.dtype for row in result.report.quantization.rows if row.op == "WHILE"} == {"int16"}


def test_masked_steps_give_zeros(rng):
    result = assert_integers(model_of("keras", zeros_for_masked), samples(rng))
    assert not runtime.load(result.bytes)(samples(rng)[:1])[:, 7:].any()


def test_what_is_large_to_begin_with_fits(rng):
    """States that a caller gives, far beyond those that the layer would make."""
    keras = importlib.import_module("keras")
    keras.utils.set_random_seed(9)
    inputs = [keras.layers.Input((10, 8)), keras.layers.Input((6,))]
    model = keras.Model(inputs, keras.layers.SimpleRNN(6, return_sequences=True)(inputs[0], initial_state=inputs[1]))
    data = [samples(rng), 5 * rng.normal(size=(64, 6)).astype(np.float32)]
    result = converter.convert(model, quantize="int8", calibration=[data])
    assert {row.dtype for row in result.report.quantization.rows if row.op == "WHILE"} == {"int16"}
    got = runtime.load(result.bytes)(*data)
    assert signal_to_noise(model.predict(data, verbose=0), got) > TOLERANCE


def test_activations_without_an_int16_form_leave_gates_float(rng):
    model, x = model_of("keras", lambda L, x: L.LSTM(12, activation="elu", name="it")(x)), samples(rng)
    result = converter.convert(model, quantize="int8", calibration=x)
    rows = result.report.quantization.rows
    assert {row.dtype for row in rows if row.op == "FULLY_CONNECTED"} == {"int8"}
    assert {row.dtype for row in rows if row.op in ("ELU", "LOGISTIC", "MUL", "WHILE")} == {"float32"}
    assert any("ELU" in row.reason for row in rows if row.op == "WHILE")
    assert signal_to_noise(model.predict(x, verbose=0), runtime.load(result.bytes)(x)) > 25


def summing(tf, x, weights):
    """A sum of many small changes."""
    step = lambda i, s: (i + 1, s + 1e-3 * tf.tanh(tf.matmul(x, weights)))  # noqa: E731
    return tf.while_loop(lambda i, s: i < 500, step, (0, tf.zeros_like(x)))[1]


def counting(tf, x, weights):
    """A float that counts, beside a state that is held back."""

    def step(count, s):
        return count + 1.0, tf.tanh(tf.matmul(s, weights) + x / (1 + 0.1 * count))

    return tf.while_loop(lambda count, s: count < 40.0, step, (0.0, x))[1]


def converging(tf, x, weights):
    """As long as a state says so."""
    step = lambda s, d: (tf.tanh(tf.matmul(s, weights) + x), tf.reduce_max(tf.abs(s)))  # noqa: E731
    return tf.while_loop(lambda s, d: d > 0.5, step, (x, 1.0), maximum_iterations=5)[0]


def multiplying(tf, x, weights):
    """By more than 1."""
    step = lambda i, s: (i + 1, 1.5 * s + tf.tanh(tf.matmul(x, weights)))  # noqa: E731
    return tf.while_loop(lambda i, s: i < 20, step, (0, x))[1]


@pytest.mark.parametrize("loop", [summing, counting, converging, multiplying])
def test_loops_that_are_no_recurrent_layer_keep_their_floats(loop, rng):
    tf, keras = importlib.import_module("tensorflow"), importlib.import_module("keras")
    weights = tf.constant(0.2 * rng.normal(size=(6, 6)), tf.float32)

    class Layer(keras.layers.Layer):
        def call(self, x):
            return loop(tf, x, weights)

    inputs = keras.layers.Input((6,))
    model, x = keras.Model(inputs, Layer()(inputs)), rng.normal(size=(64, 6)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x)
    (row,) = [row for row in result.report.quantization.rows if row.op == "WHILE"]
    assert row.dtype == "float32"
    assert row.reason
    (loop_node,) = [node for node in result.report.graph.nodes if node.op == "WHILE"]
    body = loop_node.attributes.body
    assert {str(tensor.dtype) for tensor in (*body.inputs, *body.outputs)} <= {"float32", "int32"}
    assert signal_to_noise(model.predict(x, verbose=0), runtime.load(result.bytes)(x)) > 25


def test_keep_float_names_recurrent_layers(rng):
    model, x = model_of("keras", CASES["LSTM"]), samples(rng)
    result = converter.convert(model, quantize="int8", calibration=x, keep_float="it")
    assert {row.dtype for row in result.report.quantization.rows} == {"float32"}
    np.testing.assert_allclose(runtime.load(result.bytes)(x), np.asarray(model(x)), atol=1e-5)


def test_all_of_a_model_in_int16(rng):
    model, x = model_of("keras", CASES["GRU"]), samples(rng)
    result = converter.convert(model, quantize="int16x8", calibration=x, io_dtype="int16")
    assert "float32" not in {row.dtype for row in result.report.quantization.rows if row.op != "FILL"}
    (kind,) = runtime.load(result.bytes).inputs
    assert kind.dtype == np.int16


def test_a_bias_far_larger_than_the_products_is_added_behind_the_rounding(rng):
    """A forget gate's 1, with inputs that are small."""
    assert_integers(model_of("keras", CASES["LSTM"]), 0.05 * samples(rng))

"""int8 in the loops of recurrent layers, by calibration."""

import importlib

import numpy as np
import pytest

import converter
import runtime
from schema import evaluate

LAYERS = {
    "LSTM": lambda L: L.LSTM(12, return_sequences=True, name="it"),
    "GRU": lambda L: L.GRU(12, return_sequences=True, reset_after=False, name="it"),
    "both": lambda L: L.Bidirectional(L.SimpleRNN(12), name="it"),
}


def model_of(kind, layer):
    keras = importlib.import_module(kind)
    keras.utils.set_random_seed(9)
    inputs = keras.layers.Input((10, 8))
    return keras.Model(inputs, LAYERS[layer](keras.layers)(inputs))


def signal_to_noise(expected, got):
    return 10 * np.log10((expected**2).sum() / ((got - expected) ** 2).sum())


@pytest.mark.parametrize(
    ("kind", "layer"), [("keras", "LSTM"), ("tf_keras", "LSTM"), ("keras", "GRU"), ("keras", "both")]
)
def test_recurrent_layers_multiply_integers(kind, layer, rng):
    model, x = model_of(kind, layer), rng.normal(size=(64, 10, 8)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x[16:])
    rows = result.report.quantization.rows
    assert {row.dtype for row in rows if row.op == "FULLY_CONNECTED"} == {"int8"}
    assert {row.dtype for row in rows if row.op in ("TANH", "LOGISTIC", "MUL")} <= {"float32"}
    engine = runtime.load(result.bytes)
    got, expected = engine(x[:16]), np.asarray(model(x[:16]))
    assert signal_to_noise(expected, got) > 25
    (reference,) = evaluate.run(result.report.graph, [x[:16]])
    assert signal_to_noise(reference, got) > 60  # rare roundings of float32 gates aside


def test_keep_float_names_recurrent_layers(rng):
    model, x = model_of("keras", "LSTM"), rng.normal(size=(64, 10, 8)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x, keep_float="it")
    assert {row.dtype for row in result.report.quantization.rows} == {"float32"}
    np.testing.assert_allclose(runtime.load(result.bytes)(x), np.asarray(model(x)), atol=1e-5)


def test_int16_names_recurrent_layers(rng):
    model, x = model_of("keras", "LSTM"), rng.normal(size=(64, 10, 8)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x, int16="it")
    assert {row.dtype for row in result.report.quantization.rows if row.op == "FULLY_CONNECTED"} == {"int16"}
    assert signal_to_noise(np.asarray(model(x)), runtime.load(result.bytes)(x)) > 40


def test_a_bias_far_larger_than_the_products_is_added_behind_the_rounding(rng):
    """A forget gate's 1, with inputs that are small."""
    model, x = model_of("keras", "LSTM"), 0.05 * rng.normal(size=(64, 10, 8)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x)
    assert signal_to_noise(np.asarray(model(x)), runtime.load(result.bytes)(x)) > 32

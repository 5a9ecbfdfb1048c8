"""Quantize-aware recurrent layers, and their file: int16 inside of loops."""

import numpy as np
import pytest

import converter
import runtime
import xnn_tf
from tests.support.quantize_aware import assert_file_agrees, trained


def encoder_and_decoder(L, x):
    _, state = L.GRU(5, return_state=True, name="encoder")(x)
    return L.GRU(5, name="it")(L.Dense(4)(x), initial_state=state)


CASES = {
    "LSTM": lambda L, x: L.LSTM(5, return_sequences=True, name="it")(x),
    "GRU that resets before": lambda L, x: L.GRU(5, reset_after=False, go_backwards=True, name="it")(x),
    "both directions": lambda L, x: L.Bidirectional(L.SimpleRNN(5, return_sequences=True), name="it")(x),
    "masked": lambda L, x: L.Bidirectional(L.GRU(5), merge_mode="sum", name="it")(L.Masking()(x)),
    "initial state": encoder_and_decoder,
    "dropout": lambda L, x: L.LSTM(5, dropout=0.3, recurrent_dropout=0.3, name="it")(x),
    "unrolled": lambda L, x: L.LSTM(5, unroll=True, name="it")(x),
    "relu": lambda L, x: L.SimpleRNN(5, activation="relu", name="it")(x),
}


IN_BOTH = {"LSTM", "masked", "initial state"}
"""Cases that tf_keras has every day; Keras 3 has all."""
EACH = [pytest.param("keras", case) for case in CASES] + [
    pytest.param("tf_keras", case, marks=() if case in IN_BOTH else pytest.mark.nightly) for case in CASES
]


def model_with(keras, case):
    inputs = keras.layers.Input((6, 8))
    return keras.Model(inputs, keras.layers.Dense(3, name="out")(CASES[case](keras.layers, inputs)))


def data(rng):
    x = rng.normal(size=(64, 6, 8)).astype(np.float32)
    x[:, 4:] = 0
    return x


@pytest.mark.parametrize(("keras", "case"), EACH, indirect=["keras"])
def test_the_file_computes_what_training_did(keras, rng, case):
    model, x = model_with(keras, case), data(rng)
    y = np.cumsum(x, 1)[:, :, :3]
    qat = trained(keras, model, x, y if len(model.output_shape) == 3 else y[:, -1])
    result = assert_file_agrees(qat, x, 0.98)
    rows = result.report.quantization.rows
    assert {row.dtype for row in rows if row.op == "FULLY_CONNECTED"} == {"int16", "int8"}
    # int16 loops have no float arithmetic in them. Before the loop there is some: masks are made there.
    assert [row.dtype for row in rows if row.op == "WHILE"] in ([], ["int16"], 2 * ["int16"])
    if case == "unrolled":
        assert {row.dtype for row in rows if row.op in ("ADD", "MUL", "LOGISTIC", "TANH")} == {"int16"}
    else:
        assert any(row.op == "WHILE" for row in rows)
    assert np.array_equal(xnn_tf.integer_forward(qat)(x), runtime.load(result.bytes)(x))


@pytest.mark.parametrize("ranges", ["moving", "learned"])
def test_training_computes_what_the_file_will(keras, rng, ranges):
    """But for ranges that move a little."""
    model, x = model_with(keras, "LSTM"), data(rng)
    qat = xnn_tf.quantize_aware(model, {"momentum": 0.999, "ranges": ranges}, calibration=x)
    expected = runtime.load(converter.convert(qat).bytes)(x)
    low, high = (float(end) for end in qat.get_layer("quant_out").strategy.ranges["output"].ends())
    steps = np.abs(np.asarray(qat(x, training=True)) - expected) * 255 / (high - low)
    assert steps.max() < 1.5 and (steps < 0.5).mean() > 0.95, (steps.max(), (steps < 0.5).mean())


def test_calibration_is_near_the_float_model(keras, rng):
    model, x = model_with(keras, "both directions"), data(rng)
    expected = model.predict(x, verbose=0)
    error = xnn_tf.quantize_aware(model, calibration=x).predict(x, verbose=0) - expected
    assert 10 * np.log10((expected**2).sum() / (error**2).sum()) > 30


@pytest.mark.parametrize("case", ["LSTM", "both directions"])
def test_an_exported_folder_computes_what_the_model_does(keras, rng, case, tmp_path):
    model, x = model_with(keras, case), data(rng)
    qat = xnn_tf.quantize_aware(model, calibration=x)
    qat.export(str(tmp_path / "folder"))
    result = converter.convert(tmp_path / "folder")
    linear = {row.dtype for row in result.report.quantization.rows if row.op == "FULLY_CONNECTED"}
    assert linear == {"int8", "int16"}
    found = runtime.load(result.bytes)(x)
    np.testing.assert_array_equal(found, xnn_tf.integer_forward(qat)(x))

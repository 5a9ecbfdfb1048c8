"""Quantize-aware attention, and its file: in integers but for softmaxes behind masks."""

import numpy as np
import pytest

import converter
import runtime
import xnn_tf
from tests.support.quantize_aware import assert_file_agrees, computes_in, trained

CASES = {
    "self": lambda L, x: L.MultiHeadAttention(2, 4, name="it")(x, x),
    "cross": lambda L, x: L.MultiHeadAttention(2, 4, 3, use_bias=False, name="it")(x, L.Dense(8)(x), L.Dense(5)(x)),
    "scores": lambda L, x: L.MultiHeadAttention(2, 4, name="it")(x, x, return_attention_scores=True)[0],
    "causal": lambda L, x: L.MultiHeadAttention(2, 4, name="it")(x, x, use_causal_mask=True),
    "dropout": lambda L, x: L.MultiHeadAttention(2, 4, dropout=0.3, name="it")(x, x),
    "gate": lambda L, x: L.MultiHeadAttention(2, 4, use_gate=True, name="it")(x, x),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_file_computes_what_training_did(keras, rng, case):
    if case == "gate" and keras.__name__ == "tf_keras":
        pytest.skip("tf_keras has no gates")
    inputs = keras.layers.Input((6, 8))
    model = keras.Model(inputs, keras.layers.Dense(3, name="out")(CASES[case](keras.layers, inputs)))
    x = rng.normal(size=(64, 6, 8)).astype(np.float32)
    qat = trained(keras, model, x, np.cumsum(x, 1)[:, :, :3])
    result = assert_file_agrees(qat, x, 0.99)
    assert set.union(*computes_in(result).values()) == ({"int8", "float32"} if case == "causal" else {"int8"})
    assert np.array_equal(xnn_tf.integer_forward(qat)(x), runtime.load(result.bytes)(x))
    floats = [row.op for row in result.report.quantization.rows if row.dtype == "float32"]
    assert not {"BATCH_MATMUL", "FULLY_CONNECTED"} & set(floats)
    assert ("SOFTMAX" in floats) == (case == "causal")


def test_rounding_goes_on_in_training(keras, rng):
    """In a training step too the results are steps of the output's scale, of products of rounded probabilities."""
    inputs = keras.layers.Input((6, 8))
    model = keras.Model(inputs, keras.layers.MultiHeadAttention(2, 4, name="it")(inputs, inputs))
    x = rng.normal(size=(64, 6, 8)).astype(np.float32)
    qat = xnn_tf.quantize_aware(model, {"momentum": 0.999}, calibration=x)
    within = np.abs(np.asarray(qat(x, training=True)) - runtime.load(converter.convert(qat).bytes)(x))
    low, high = (float(end) for end in qat.get_layer("quant_it").strategy.ranges["output"].ends())
    assert within.max() < 1.01 * (high - low) / 255

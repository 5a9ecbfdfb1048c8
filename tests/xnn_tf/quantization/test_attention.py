"""Quantize-aware attention, and its file: in integers, behind masks as well."""

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
    assert set.union(*computes_in(result).values()) == {"int8"}
    assert np.array_equal(xnn_tf.integer_forward(qat)(x), runtime.load(result.bytes)(x))


def padded(rng, count=64, length=6):
    """Tokens, of which 0 is padding, in rows of 1 to 6 tokens."""
    tokens = rng.integers(1, 12, (count, length)).astype(np.float32)
    return np.where(np.arange(length) < rng.integers(1, length + 1, (count, 1)), tokens, 0).astype(np.float32)


DROPPING = 2


def attentions(keras):
    """A model of tokens, whose attention is masked in each way that there is. Each has inputs of its own: of a tensor
    that several take, Keras 3 shows only one of them the mask.
    """
    L = keras.layers
    tokens, allowed = L.Input((6,), name="tokens"), L.Input((6, 6), dtype="bool", name="allowed")

    def embedded():
        return L.Embedding(12, 8, mask_zero=True)(tokens)

    def attention(x, y, arguments=None, **settings):
        return L.MultiHeadAttention(2, 4, **settings)(x, y, **(arguments or {}))

    x, y, z = embedded(), embedded(), embedded()
    vectors = L.Masking()(L.Reshape((6, 1))(tokens))
    outputs = [
        attention(x, x, {"use_causal_mask": True}),
        attention(y, y, {"attention_mask": allowed}),
        attention(z, z, dropout=0.2),
        attention(vectors, L.Dense(5)(L.Reshape((6, 1))(tokens))),
    ]
    return keras.Model([tokens, allowed], outputs)


@pytest.mark.parametrize(("bits", "ranges"), [(8, "learned"), (16, "moving")])
def test_masks(keras, rng, bits, ranges):
    """In training and outside within a step of the file, which is in integers. The rows of queries that are padding
    themselves let nothing in."""
    model, data = attentions(keras), [padded(rng, 32), rng.random((32, 6, 6)) < 0.6]
    calibration = {"tokens": data[0], "allowed": data[1]}
    settings = {"activations": bits, "ranges": ranges, "momentum": 0.0}
    qat = xnn_tf.quantize_aware(model, settings, calibration=calibration)
    for _ in range(3):  # what follows has ranges that depend on those before
        training = qat(data, training=True)
    result = converter.convert(qat)
    rows = {row.op: row.dtype for row in result.report.quantization.rows}
    assert {rows[op] for op in ("SOFTMAX", "BATCH_MATMUL", "FULLY_CONNECTED")} == {f"int{bits}"}
    files = list(runtime.load(result.bytes)(**calibration).values())
    for given, of_file, bare in zip(xnn_tf.integer_forward(qat)(data).values(), files, model(data), strict=True):
        np.testing.assert_array_equal(given, of_file)
        assert np.abs(of_file - bare).max() < 0.1 * np.abs(bare).max()
    makers = {node.outputs[0]: node for node in result.report.graph.nodes}
    scales = [makers[tensor].inputs[0].quantization.scale[0] for tensor in result.report.graph.outputs]
    for index, (values, of_file, scale) in enumerate(zip(qat.predict(data, verbose=0), files, scales, strict=True)):
        steps = np.abs(values - of_file) / scale
        assert steps.max() < 1.01 and (steps < 0.5).mean() > 0.97, (index, steps.max(), (steps < 0.5).mean())
    for index, values in enumerate(training):
        steps = np.abs(np.asarray(values) - files[index]) / scales[index]
        assert index == DROPPING or steps.max() < 1.01, (index, steps.max())


def test_rounding_goes_on_in_training(keras, rng):
    """In a training step too the results are steps of the output's scale, of products of rounded probabilities."""
    inputs = keras.layers.Input((6, 8))
    model = keras.Model(inputs, keras.layers.MultiHeadAttention(2, 4, name="it")(inputs, inputs))
    x = rng.normal(size=(64, 6, 8)).astype(np.float32)
    qat = xnn_tf.quantize_aware(model, {"momentum": 0.999}, calibration=x)
    within = np.abs(np.asarray(qat(x, training=True)) - runtime.load(converter.convert(qat).bytes)(x))
    low, high = (float(end) for end in qat.get_layer("quant_it").strategy.ranges["output"].ends())
    assert within.max() < 1.01 * (high - low) / 255

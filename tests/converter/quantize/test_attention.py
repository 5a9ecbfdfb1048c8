"""Attention in int8: calibrated from Keras, and as LiteRT computes it."""

import importlib

import numpy as np
import pytest

import converter
import runtime
from tests.support.litert_files import Session


def attention(kind: str = "keras"):
    keras = importlib.import_module(kind)
    keras.utils.set_random_seed(11)
    inputs = keras.layers.Input((6, 8), batch_size=4)
    return keras.Model(inputs, keras.layers.MultiHeadAttention(2, 4, name="attention")(inputs, inputs))


@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
def test_calibrated_attention_computes_integers(kind, rng):
    model, x = attention(kind), rng.normal(size=(64, 6, 8)).astype(np.float32)
    result = converter.convert(model, quantize="int8", calibration=x[4:])
    assert {row.dtype for row in result.report.quantization.rows} == {"int8"}
    expected = np.asarray(model(x[:4]))
    error = runtime.load(result.bytes)(x[:4]) - expected
    assert 10 * np.log10((expected**2).sum() / (error**2).sum()) > 25


def causal(L, tokens):
    x = L.Embedding(12, 8)(tokens)
    return L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)


def padding(L, tokens):
    x = L.Embedding(12, 8, mask_zero=True)(tokens)
    return L.MultiHeadAttention(2, 4)(x, x)


def dot(L, tokens):
    x = L.Embedding(12, 8, mask_zero=True)(tokens)
    return L.Attention()([x, x], use_causal_mask=True)


@pytest.mark.parametrize("method", ["int8", "int16x8"])
@pytest.mark.parametrize("build", [causal, padding, dot])
@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
def test_masks_leave_scores_in_integers(kind, build, method, rng):
    """Queries that are padding themselves, whose rows let nothing in, are compared as well."""
    keras = importlib.import_module(kind)
    keras.utils.set_random_seed(5)
    inputs = keras.layers.Input((6,))
    model = keras.Model(inputs, build(keras.layers, inputs))
    tokens = np.where(np.arange(6) < rng.integers(1, 7, (96, 1)), rng.integers(1, 12, (96, 6)), 0).astype(np.float32)
    result = converter.convert(model, quantize=method, calibration=tokens)
    rows = {row.op: row.dtype for row in result.report.quantization.rows}
    assert {rows["SOFTMAX"], rows["BATCH_MATMUL"]} == {"int8" if method == "int8" else "int16"}
    expected = np.asarray(model(tokens))
    error = runtime.load(result.bytes)(tokens) - expected
    assert 10 * np.log10((expected**2).sum() / (error**2).sum()) > (28 if method == "int8" else 40)


def test_attention_that_tensorflow_quantized_has_the_integers_of_litert(rng):
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    model, x = attention(), rng.normal(size=(64, 6, 8)).astype(np.float32)
    concrete = tf.function(lambda value: model(value)).get_concrete_function(tf.TensorSpec((4, 6, 8)))
    writer = tf.lite.TFLiteConverter.from_concrete_functions([convert_variables_to_constants_v2(concrete)])
    writer.optimizations = [tf.lite.Optimize.DEFAULT]
    writer.representative_dataset = lambda: ([x[i : i + 4]] for i in range(0, 64, 4))
    writer.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    writer.inference_input_type = writer.inference_output_type = tf.int8
    content = writer.convert()
    session = Session(content)
    (given,) = session.draw(rng)
    (expected,) = session.run([given])
    assert np.unique(expected).size > 20
    np.testing.assert_array_equal(runtime.load(converter.convert(content).bytes)(given), expected)

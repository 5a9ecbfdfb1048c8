"""What other converters are publicly known to get wrong, from a Keras model to the engine's answer."""

import importlib

import numpy as np
import pytest

import converter
import runtime
from tests.support.keras_parity import check, randomize


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request):
    return importlib.import_module(request.param)


def draw(rng, *shape, count=2):
    return rng.normal(0, 2, (count, *shape)).astype(np.float32)


def ops(result):
    return [node.op for node in result.report.graph.nodes]


@pytest.mark.parametrize("kernel", [(3, 1), (1, 3), (1, 2)])
def test_depthwise_with_a_kernel_that_is_not_square_and_strides(keras, rng, kernel):
    inputs = keras.Input((8, 8, 2))
    model = keras.Model(inputs, keras.layers.DepthwiseConv2D(kernel, strides=2, padding="same")(inputs))
    randomize(model, rng)
    check(model, draw(rng, 8, 8, 2))


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_dilated_convolution_with_batch_norm_and_relu_is_one_node(keras, rng, padding):
    L = keras.layers
    inputs = keras.Input((12, 12, 3))
    x = L.Conv2D(4, 3, dilation_rate=2, padding=padding, use_bias=False)(inputs)
    model = keras.Model(inputs, L.ReLU()(L.BatchNormalization()(x)))
    randomize(model, rng)
    result = check(model, draw(rng, 12, 12, 3))
    assert ops(result) == ["CONV_2D"]
    attributes = result.report.graph.nodes[0].attributes
    assert (attributes.dilation_h, attributes.dilation_w, attributes.activation) == (2, 2, "RELU")


def test_dilated_depthwise_convolution_is_one_node(keras, rng):
    inputs = keras.Input((12, 11, 3))
    x = keras.layers.DepthwiseConv2D(3, dilation_rate=2, padding="same")(inputs)
    model = keras.Model(inputs, keras.layers.ReLU(6.0)(x))
    randomize(model, rng)
    assert ops(check(model, draw(rng, 12, 11, 3))) == ["DEPTHWISE_CONV_2D"]


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (8, 7)])
@pytest.mark.parametrize(
    "make",
    [
        lambda L: L.Conv2D(3, 3, strides=2, padding="same"),
        lambda L: L.Conv2D(3, 2, strides=2, padding="same"),
        lambda L: L.MaxPooling2D(3, 2, padding="same"),
        lambda L: L.AveragePooling2D(3, 2, padding="same"),
        lambda L: L.AveragePooling2D(2, 2, padding="same"),
    ],
    ids=["conv3", "conv2", "max3", "average3", "average2"],
)
def test_same_padding_with_strides(keras, rng, size, make):
    inputs = keras.Input((*size, 2))
    model = keras.Model(inputs, make(keras.layers)(inputs))
    randomize(model, rng)
    check(model, draw(rng, *size, 2))


def test_depthwise_multiplier_folds_batch_norm_by_output_channel(keras, rng):
    L = keras.layers
    inputs = keras.Input((6, 6, 3))
    model = keras.Model(
        inputs, L.BatchNormalization()(L.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False)(inputs))
    )
    randomize(model, rng)
    assert ops(check(model, draw(rng, 6, 6, 3))) == ["DEPTHWISE_CONV_2D"]


def test_batch_norm_on_another_axis_does_not_fold(keras, rng):
    L = keras.layers
    inputs = keras.Input((8, 8, 3))
    x = L.Conv2D(6, 3, use_bias=False, name="conv")(inputs)  # as many channels as rows
    model = keras.Model(inputs, L.BatchNormalization(axis=1, name="bn")(x))
    randomize(model, rng)
    result = check(model, draw(rng, 8, 8, 3))
    assert len(ops(result)) > 1
    kernel = next(w for w in model.get_weights() if w.ndim == 4)
    np.testing.assert_array_equal(result.report.graph.nodes[0].inputs[1].value, kernel.transpose(3, 0, 1, 2))


def test_flatten_after_convolution_keeps_height_width_channels(keras, rng):
    L = keras.layers
    inputs = keras.Input((5, 6, 2))
    model = keras.Model(inputs, L.Dense(4)(L.Flatten()(L.Conv2D(3, 2)(inputs))))
    randomize(model, rng)
    check(model, draw(rng, 5, 6, 2))


def test_any_batch_size_without_converting_again(keras, rng):
    L = keras.layers
    inputs = keras.Input((6, 6, 2))
    x = L.Reshape((4, 12))(L.Conv2D(3, 3)(inputs)[:, :, :, :]) if keras.__name__ == "keras" else L.Conv2D(3, 3)(inputs)
    model = keras.Model(inputs, L.Dense(4)(L.Flatten()(L.Reshape((4, 12))(x))))
    randomize(model, rng)
    engine = runtime.load(converter.convert(model).bytes)
    for count in (1, 5, 2):
        x = draw(rng, 6, 6, 2, count=count)
        np.testing.assert_allclose(engine(x), np.asarray(model(x)), rtol=1e-5, atol=1e-5)


def hard_swish_by_relu6(keras, x):
    return keras.layers.Multiply()([x, keras.layers.Rescaling(1 / 6)(keras.layers.ReLU(6.0)(x + 3.0))])


def hard_swish_by_hard_sigmoid(keras, x):
    return keras.layers.Multiply()([x, keras.layers.Activation("hard_sigmoid")(x)])


def hard_silu(keras, x):
    return keras.layers.Activation("hard_silu")(x)


@pytest.mark.parametrize("spelling", [hard_swish_by_relu6, hard_swish_by_hard_sigmoid, hard_silu])
def test_hard_swish_fuses(rng, spelling):
    """tf_keras's hard_sigmoid is another function, 0.2 x + 0.5."""
    import keras

    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3)(inputs)
    model = keras.Model(inputs, spelling(keras, x))
    randomize(model, rng)
    assert ops(check(model, draw(rng, 8, 8, 3))) == ["CONV_2D", "HARD_SWISH"]


def test_hard_swish_of_tf_keras_fuses(rng):
    import tf_keras

    inputs = tf_keras.Input((8, 8, 3))
    x = tf_keras.layers.Conv2D(4, 3)(inputs)
    model = tf_keras.Model(inputs, hard_swish_by_relu6(tf_keras, x))
    randomize(model, rng)
    assert ops(check(model, draw(rng, 8, 8, 3))) == ["CONV_2D", "HARD_SWISH"]


@pytest.mark.parametrize("stored", [False, True])
def test_two_outputs_keep_names_and_order(keras, rng, tmp_path, stored):
    inputs = keras.Input((4,), name="x")
    b, a = keras.layers.Dense(2, name="b")(inputs), keras.layers.Dense(3, name="a")(inputs)
    model = keras.Model(inputs, [b, a])
    if stored:
        model.export(str(tmp_path / "model"))
    result = converter.convert(tmp_path / "model" if stored else model)
    x = draw(rng, 4)
    answer = runtime.load(result.bytes)(x)
    assert list(answer) == ["b", "a"]
    for ours, theirs in zip(answer.values(), model(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

"""quantize_aware: what is wrapped, how it trains, and that model and file agree."""

import numpy as np
import pytest

import converter
import runtime
import xnn_tf
from schema import evaluate, fixedpoint
from schema.errors import InputError, UnsupportedError, XnnError
from tests.support.quantize_aware import assert_file_agrees, computes_in, convolutional, images, trained


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"weights": 4},
        {"activations": 16},
        {"ranges": "learned", "weight_steps": "learned"},
        {"freeze_batch_norm": 4},
    ],
    ids=["int8", "weights4", "int16", "learned", "frozen"],
)
def test_accuracy_of_the_file_is_that_of_the_model(keras, rng, recipe):
    """A public complaint about other tools: they differ."""
    x, y = images(rng)
    model = trained(keras, convolutional(keras), x, y, recipe=recipe)
    dtype = "int16" if recipe.get("activations") == 16 else "int8"
    result = assert_file_agrees(model, x, 0.9)
    assert set.union(*computes_in(result).values()) == {dtype}
    assert result.report.quantization.samples == 0
    if recipe.get("weights") == 4:
        kernels = [n.inputs[1].value for n in result.report.graph.nodes if "CONV" in n.op or n.op == "FULLY_CONNECTED"]
        assert len(kernels) == 4 and all(np.abs(kernel).max() == 7 for kernel in kernels)
    assert np.abs(model.predict(x, verbose=0)).max() > 0.3


def test_integer_forward_equals_the_file_bit_for_bit(keras, rng, tmp_path):
    x, y = images(rng)
    model = trained(keras, convolutional(keras), x, y)
    forward = xnn_tf.integer_forward(model)
    result = converter.convert(model)
    result.save(tmp_path / "net.xnn")
    for scale in (0.3, 1, 5):
        batch = (scale * rng.normal(size=(20, 8, 8, 3))).astype(np.float32)
        expected = runtime.load(tmp_path / "net.xnn")(batch)
        np.testing.assert_array_equal(forward(batch), expected)
        np.testing.assert_array_equal(forward.predict(batch, batch_size=7), expected)
    with fixedpoint.requantization("FP32_ROUND_EVEN"):
        np.testing.assert_array_equal(evaluate.run(result.report.graph, [batch])[0], expected)


def test_points_are_those_at_which_the_converter_rounds(keras, rng):
    x, y = images(rng, 32)
    layers = keras.layers
    inputs = layers.Input((8, 8, 3))
    z = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", activation="linear")(inputs))
    z = layers.Add()([layers.ReLU()(z), layers.SeparableConv2D(4, 3, padding="same", activation="relu")(z)])
    z = layers.MaxPooling2D(2)(layers.Activation("relu")(z))
    z = layers.Dense(5, "sigmoid")(layers.Flatten()(z))
    model = keras.Model(inputs, layers.Dense(4)(z))
    usual = converter.convert(model, "int8", x).report.graph
    learned = converter.convert(trained(keras, model, x, y, 1)).report.graph
    assert [node.op for node in learned.nodes] == [node.op for node in usual.nodes]


def test_wrappers_and_weights(keras, rng):
    model = convolutional(keras)
    before = [np.array(w) for w in model.get_weights()]
    qat = xnn_tf.quantize_aware(model)
    names = [layer.name for layer in qat.layers]
    assert names == [
        *("image", "quantize_image", "quant_conv", "quant_depthwise", "quant_pointwise", "quant_add", "quant_pool"),
        *("quant_mean", "quant_logits"),
    ]
    wrapper = qat.get_layer("quant_conv")
    assert wrapper.layer.name == "conv" and wrapper.batch_norm.name == "bn" and wrapper.activation.name == "relu"
    np.testing.assert_array_equal(wrapper.layer.kernel.numpy(), before[0])
    assert type(qat).__module__.split(".")[0] == keras.__name__
    found = [row.layer for row in xnn_tf.sparsity(qat)]
    assert found == ["quant_conv/conv", "quant_depthwise/depthwise", "quant_pointwise/pointwise", "quant_logits/logits"]
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_calibration_makes_ranges_known_before_training(keras, rng):
    x, _ = images(rng)
    model = convolutional(keras)
    qat = xnn_tf.quantize_aware(model, calibration=x)
    expected = model.predict(x, verbose=0)
    got = qat.predict(x, verbose=0)
    assert np.abs(got - expected).max() < 0.1 * np.abs(expected).max()
    assert_file_agrees(qat, x)


@pytest.mark.parametrize(("momentum", "weights"), [(0.99, [1 / 3] * 3), (0.5, [0.25, 0.25, 0.5])])
def test_ranges_are_means_of_the_first_batches(keras, momentum, weights, tmp_path):
    """A moving average that begins with the first batch would hardly have moved: it lags in short trainings."""
    layers = keras.layers
    model = keras.Sequential([layers.Input((2,)), layers.Dense(1, use_bias=False, name="out")])
    qat = xnn_tf.quantize_aware(model, {"momentum": momentum})
    qat.compile("sgd", "mean_squared_error")
    x = np.repeat(np.float32([1, 4, 10]), 8)[:, None] * np.float32([1, -2])
    qat.fit(x[:16], x[:16, :1], batch_size=8, shuffle=False, verbose=0)
    qat.save(tmp_path / "qat.keras")
    loaded = keras.models.load_model(tmp_path / "qat.keras")  # goes on counting
    loaded.fit(x[16:], x[16:, :1], batch_size=8, verbose=0)
    low, high = (end.numpy() for end in loaded.layers[1].strategy.ranges["output"].ends())
    mean = float(np.dot(weights, [1, 4, 10]))
    np.testing.assert_allclose([low, high], [-2 * mean, mean], rtol=1e-5)


def test_what_calibration_found_counts_as_a_batch(keras):
    layers = keras.layers
    qat = xnn_tf.quantize_aware(keras.Sequential([layers.Input((1,)), layers.Dense(1)]), calibration=np.float32([[8]]))
    qat(np.float32([[4]]), training=True)
    assert qat.layers[1].strategy.ranges["output"].ends()[1].numpy() == 6


def test_calibration_knows_the_range_of_what_is_rounded_twice(keras, rng):
    x, _ = images(rng)
    layers = keras.layers
    inputs = layers.Input((8, 8, 3))
    model = keras.Model(inputs, layers.LeakyReLU()(layers.AveragePooling2D(2)(inputs)))
    expected = model.predict(x, verbose=0)
    got = xnn_tf.quantize_aware(model, calibration=x).predict(x, verbose=0)
    assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()


def test_a_model_that_saw_no_data_does_not_convert(keras, rng):
    qat = xnn_tf.quantize_aware(convolutional(keras))
    with pytest.raises(XnnError, match="never learned: train the model"):
        converter.convert(qat)


def test_training_learns(keras, rng):
    x, y = images(rng)
    # 36 steps: with a momentum of 0.99 the float model's moving averages have not come near the batches' statistics.
    qat = trained(keras, convolutional(keras, momentum=0.9), x, y, 12)
    assert (qat.predict(x, verbose=0).argmax(1) == y).mean() > 0.9


def test_excluded_layers_stay_float(keras, rng):
    x, y = images(rng, 32)
    qat = trained(keras, convolutional(keras), x, y, 1, recipe={"exclude": ["logits"]})
    assert computes_in(converter.convert(qat))["logits"] == {"float32"}
    with pytest.raises(InputError, match="exclude: no layer is called 'logit'"):
        xnn_tf.quantize_aware(convolutional(keras), {"exclude": "logit"})


def test_settings_of_single_layers(keras, rng):
    x, y = images(rng, 32)
    qat = trained(keras, convolutional(keras), x, y, 1, recipe={"per_layer": {"logits": {"weights": 4}}})
    assert qat.get_layer("quant_logits").strategy.settings.weights == 4
    assert qat.get_layer("quant_conv").strategy.settings.weights == 8
    with pytest.raises(InputError, match="per_layer sets 'weight'"):
        xnn_tf.quantize_aware(convolutional(keras), {"per_layer": {"logits": {"weight": 4}}})


@pytest.mark.parametrize(
    ("recipe", "match"),
    [({"weights": 3}, "weights is 3"), ({"bits": 8}, "recipe has 'bits'"), (7, "recipe is 7"), ({"momentum": 1}, "up")],
)
def test_recipes_of_no_use_are_refused(keras, recipe, match):
    with pytest.raises(InputError, match=match):
        xnn_tf.quantize_aware(convolutional(keras), recipe)


def test_models_of_no_use_are_refused(keras):
    with pytest.raises(InputError, match="no Keras model"):
        xnn_tf.quantize_aware(3)
    with pytest.raises(InputError, match="not built"):
        xnn_tf.quantize_aware(keras.Sequential([keras.layers.Dense(3)]))
    with pytest.raises(InputError, match="already"):
        xnn_tf.quantize_aware(xnn_tf.quantize_aware(convolutional(keras)))
    inputs = keras.layers.Input((3,))
    half = keras.Model(inputs, keras.layers.Dense(2, dtype="mixed_bfloat16", name="half")(inputs))
    with pytest.raises(UnsupportedError, match="'half' computes in bfloat16"):
        xnn_tf.quantize_aware(half)
    with pytest.raises(UnsupportedError, match="'half' computes in bfloat16"):
        xnn_tf.QuantizeWrapper(half.layers[1])


def test_integer_forward_refuses_float_models(keras):
    with pytest.raises(InputError, match="learned no ranges"):
        xnn_tf.integer_forward(convolutional(keras))

"""Each kind of layer, wrapped, trained a step and converted."""

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from tests.support.quantize_aware import assert_file_agrees, computes_in, trained

IMAGE = {
    "Conv2DTranspose": lambda L, x: L.Conv2DTranspose(3, 2, 2, activation="relu", name="it")(x),
    "SeparableConv2D": lambda L, x: L.SeparableConv2D(3, 2, name="it")(x),
    "sigmoid": lambda L, x: L.Conv2D(3, 1, activation="sigmoid", name="it")(x),
    "BatchNormalization": lambda L, x: L.BatchNormalization(name="it")(x),
    "LeakyReLU": lambda L, x: L.LeakyReLU(name="it")(x),
    "PReLU": lambda L, x: L.PReLU(shared_axes=[1, 2], name="it")(x),
    "AveragePooling2D": lambda L, x: L.AveragePooling2D(2, name="it")(x),
    "Concatenate": lambda L, x: L.Concatenate(name="it")([x, L.Conv2D(1, 1)(x)]),
    "Multiply": lambda L, x: L.Multiply(name="it")([x, L.Conv2D(2, 1)(x), L.Conv2D(2, 1)(x)]),
}
SEQUENCE = {
    "Conv1D": lambda L, x: L.Conv1D(3, 2, activation="relu", name="it")(x),
    "EinsumDense": lambda L, x: L.EinsumDense("abc,cde->abde", (5, 2, 3), bias_axes="de", name="it")(x),
    "Dense": lambda L, x: L.Dense(3, "gelu", name="it")(x),
}
FLOAT = {
    "RNN": lambda L, x: L.RNN(L.GRUCell(4), name="it")(x),
    "LayerNormalization": lambda L, x: L.LayerNormalization(name="it")(x),
}


def model_with(keras, shape, layer):
    inputs = keras.layers.Input(shape)
    z = keras.layers.Flatten()(layer(keras.layers, inputs))
    return keras.Model(inputs, keras.layers.Dense(2, name="out")(z))


def data(rng, shape):
    x = rng.normal(size=(64, *shape)).astype(np.float32)
    return x, x.reshape(64, -1)[:, :2]


@pytest.mark.parametrize("kind", [*IMAGE, *SEQUENCE])
def test_layers_that_compute_integers(keras, rng, kind):
    shape = (4, 4, 2) if kind in IMAGE else (5, 3)
    x, y = data(rng, shape)
    qat = trained(keras, model_with(keras, shape, {**IMAGE, **SEQUENCE}[kind]), x, y, 1)
    assert computes_in(assert_file_agrees(qat, x, 0.9))["it"] == {"int8"}


@pytest.mark.parametrize("kind", list(FLOAT))
def test_layers_that_compute_floats(keras, rng, kind):
    x, y = data(rng, (5, 3))
    qat = trained(keras, model_with(keras, (5, 3), FLOAT[kind]), x, y, 1)
    result = assert_file_agrees(qat, x)
    assert "float32" in set.union(*computes_in(result).values()) and computes_in(result)["out"] == {"int8"}
    stored = any("stored as int8" in note for note in result.report.quantization.notes)
    assert stored == (kind != "LayerNormalization")


def test_attention_keeps_masks(keras, rng):
    layers = keras.layers
    tokens = layers.Input((6,), dtype="int32")
    z = layers.Embedding(10, 8, mask_zero=True)(tokens)
    attended = layers.MultiHeadAttention(2, 4, name="attention")(z, z)
    model = keras.Model(tokens, attended)
    x = rng.integers(1, 10, (16, 6)).astype(np.int32)
    x[:, 3:] = 0
    expected = model.predict(x, verbose=0)
    unmasked = np.asarray(model.get_layer("attention")(*[model.layers[1].embeddings.numpy()[x]] * 2))
    got = xnn_tf.quantize_aware(model, calibration=x).predict(x, verbose=0)
    error, difference = np.abs(got - expected)[:, :3].max(), np.abs(unmasked - expected)[:, :3].max()
    assert error < 0.1 * difference, (error, difference)


def test_masks_pass_layers_that_take_none(keras, rng):
    layers = keras.layers
    tokens = layers.Input((6,), dtype="int32")
    z = layers.LeakyReLU()(layers.Dense(4)(layers.Embedding(10, 8, mask_zero=True)(tokens)))
    model = keras.Model(tokens, layers.LSTM(3)(z))
    x = rng.integers(1, 10, (16, 6)).astype(np.int32)
    x[:, 3:] = 0
    expected = model.predict(x, verbose=0)
    got = xnn_tf.quantize_aware(model, calibration=x).predict(x, verbose=0)
    assert np.abs(got - expected).max() < 0.05 * np.abs(expected).max()


def test_layers_that_are_called_twice(keras, rng):
    first, second = keras.layers.Input((6,)), keras.layers.Input((6,))
    shared = keras.layers.Dense(4, "relu", name="shared")
    z = keras.layers.Concatenate()([shared(first), shared(keras.layers.Dense(6, "tanh")(second))])
    model = keras.Model([first, second], keras.layers.Dense(2, name="out")(z))
    x = [rng.normal(size=(64, 6)).astype(np.float32) for _ in range(2)]
    qat = xnn_tf.quantize_aware(model)
    qat.compile("adam", "mse")
    qat.fit(x, x[0][:, :2], verbose=0)
    forward = xnn_tf.integer_forward(qat)(*x)
    got = qat.predict(x, verbose=0)
    assert np.abs(got - forward).max() < 0.05 * np.abs(got).max()


def test_a_layer_of_ones_own(keras, rng, tmp_path):
    @xnn_tf.quantization.register_strategy
    class ScaleStrategy(xnn_tf.quantization.Strategy):
        def build(self, wrapper, shapes):
            self.add_range(wrapper, "output")

        def call(self, wrapper, inputs, sources, training, **arguments):
            assert sources[0] is not None
            return self.output(wrapper.layer.call(inputs), training)

    class Scale(keras.layers.Layer):
        def quantization_strategy(self, settings):
            return ScaleStrategy(settings)

        def call(self, x):
            return x * 3.0

    x, y = data(rng, (6,))
    qat = trained(keras, model_with(keras, (6,), lambda L, x: Scale(name="it")(x)), x, y, 1)
    assert computes_in(assert_file_agrees(qat, x))["it"] == {"int8"}
    qat.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects={"Scale": Scale})
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), qat.predict(x, verbose=0))


@pytest.mark.parametrize("activations", [8, 16])
def test_weights_that_are_no_kernels_are_rounded_as_they_are_stored(keras, rng, activations):
    @xnn_tf.quantization.register_strategy
    class GainStrategy(xnn_tf.quantization.Strategy):
        def build(self, wrapper, shapes):
            self.add_range(wrapper, "output")

        def call(self, wrapper, inputs, sources, training, **arguments):
            gain = self.quantized(wrapper, wrapper.layer.gain)
            with wrapper.swapped([(wrapper.layer.gain, gain)]):
                return self.output(wrapper.layer.call(inputs), training)

    class Gain(keras.layers.Layer):
        def quantization_strategy(self, settings):
            return GainStrategy(settings)

        def build(self, shape):
            self.gain = self.add_weight(name="gain", shape=(shape[-1],), initializer="random_normal")

        def call(self, x):
            return x * self.gain

    x, y = data(rng, (6,))
    recipe = {"activations": activations}
    qat = trained(keras, model_with(keras, (6,), lambda L, x: Gain(name="it")(x)), x, y, 1, recipe=recipe)
    wrapper = qat.get_layer("quant_it")
    gain, (rounded, step) = wrapper.layer.gain.numpy(), wrapper.quantized(wrapper.layer.gain)
    assert step.shape == () and 0 < np.abs(rounded - gain).max() <= 0.51 * step.numpy()
    result = assert_file_agrees(qat, x)
    assert computes_in(result)["it"] == {f"int{activations}"}
    (stored,) = [n.inputs[1] for n in result.report.graph.nodes if n.op == "MUL"]
    np.testing.assert_allclose(stored.quantization.scale[0], step, rtol=1e-4)


def test_matrices_that_are_no_kernels_have_one_step(keras, rng):
    wrapper = xnn_tf.QuantizeWrapper(keras.layers.Dense(3, name="it"))
    wrapper(rng.normal(size=(2, 6)).astype(np.float32))
    other = tf.Variable(rng.normal(size=(6, 5)).astype(np.float32))
    rounded, steps = wrapper.quantized(other)
    assert np.size(steps) == 1 and 20 < np.unique(np.round(rounded / steps)).size <= 30
    np.testing.assert_allclose(np.round(rounded / steps), rounded / steps, atol=1e-3)


def test_a_wrapper_by_itself_rounds_its_inputs(keras, rng):
    x, _ = data(rng, (6,))
    wrapper = xnn_tf.QuantizeWrapper(keras.layers.Dense(3, name="it"))
    before = wrapper(x, training=True)
    assert wrapper.name == "quant_it" and len(wrapper.strategy.ranges) == 2
    assert np.abs(before.numpy() - wrapper.layer(x).numpy()).max() < 0.1

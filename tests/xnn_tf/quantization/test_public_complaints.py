"""What users say of other tools for quantization-aware training, each by a test: it must not be so here."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import converter
import runtime
import xnn_tf
from schema.errors import UnsupportedError
from tests.support.quantize_aware import assert_file_agrees, computes_in, trained


def small(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((4, 4, 2)),
            layers.Conv2D(3, 1, use_bias=False, name="conv"),
            layers.BatchNormalization(name="bn"),
            layers.ReLU(name="relu"),
            layers.Flatten(name="flat"),
            layers.Dense(2, name="out"),
        ],
        name="small",
    )


@pytest.fixture
def data(rng):
    x = rng.normal(size=(64, 4, 4, 2)).astype(np.float32)
    return x, x.mean((1, 2)) * np.float32([1, -2])


def test_a_saved_qat_model_reloads(keras, data, tmp_path):
    qat = trained(keras, small(keras), *data, 1)
    expected = qat.predict(data[0], verbose=0)
    paths = [tmp_path / "m.keras", tmp_path / "m.h5"]
    paths += [tmp_path / "folder"] if keras.__name__ == "tf_keras" else []
    for path in paths:
        qat.save(path)
        loaded = keras.models.load_model(path)
        np.testing.assert_array_equal(loaded.predict(data[0], verbose=0), expected)
        if keras.__name__ == "keras" and path.suffix == ".h5":
            # Keras 3 makes the optimizer of any model in an HDF5 file without variables: it has to be compiled again.
            loaded.compile("adam", "mean_squared_error", jit_compile=False)
        loaded.fit(*data, verbose=0)  # compiled as it was
    weights = tmp_path / "m.weights.h5"
    qat.save_weights(weights)
    again = xnn_tf.quantize_aware(small(keras))
    again.load_weights(weights)
    np.testing.assert_array_equal(again.predict(data[0], verbose=0), expected)


def test_a_saved_qat_model_converts_where_xnn_tf_is_not_imported(keras, data, tmp_path):
    qat = trained(keras, small(keras), *data, 1)
    qat.save(tmp_path / "qat.keras")
    command = [sys.executable, "-m", "converter", str(tmp_path / "qat.keras"), str(tmp_path / "qat.xnn")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = xnn_tf.integer_forward(qat)(data[0])
    np.testing.assert_array_equal(runtime.load(tmp_path / "qat.xnn")(data[0]), expected)


def test_an_exported_saved_model_converts(keras, data, tmp_path):
    qat = trained(keras, small(keras), *data, 1)
    qat.export(str(tmp_path / "folder"))
    forward = runtime.load(converter.convert(tmp_path / "folder").bytes)
    np.testing.assert_array_equal(forward(data[0]), xnn_tf.integer_forward(qat)(data[0]))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.filterwarnings("ignore")
def test_recurrent_layers_are_not_refused(keras, rng, kind):
    layers = keras.layers
    inputs = layers.Input((5,), dtype="int32")
    z = layers.Embedding(20, 6, name="table")(inputs)
    z = getattr(layers, kind)(8, name="recurrent")(z)
    x = rng.integers(0, 20, (64, 5)).astype(np.int32)
    qat = trained(keras, keras.Model(inputs, layers.Dense(2, name="out")(z)), x, np.sin(x[:, :2]).astype(np.float32), 2)
    result = assert_file_agrees(qat, x)
    kernel = qat.get_layer("quant_recurrent").quantized(qat.get_layer("quant_recurrent").layer.cell.kernel)[0].numpy()
    assert all(np.unique(np.round(kernel[:, c] / np.abs(kernel[:, c]).max() * 127, 3) % 1).size == 1 for c in range(8))
    assert computes_in(result)["out"] == {"int8"}
    linear = [row.dtype for row in result.report.quantization.rows if row.op == "FULLY_CONNECTED"]
    assert linear == ["int16", "int8", "int16"]  # of the inputs, "out", in the loop


def test_custom_training_loops_are_not_awkward(keras, data):
    qat = xnn_tf.quantize_aware(small(keras))
    optimizer = keras.optimizers.Adam(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(qat(x, training=True) - y))
        gradients = tape.gradient(loss, qat.trainable_variables)
        assert all(gradient is not None for gradient in gradients)
        optimizer.apply_gradients(zip(gradients, qat.trainable_variables, strict=True))
        return loss

    losses = [float(step(*data)) for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]
    assert_file_agrees(qat, data[0])


def test_small_tensors_are_not_silently_left_unquantized(keras, rng):
    layers = keras.layers
    model = keras.Sequential([layers.Input((2,)), layers.Dense(2, "tanh", name="a"), layers.Dense(1, name="b")])
    x = rng.normal(size=(64, 2)).astype(np.float32)
    qat = trained(keras, model, x, x[:, :1], 1)
    assert computes_in(assert_file_agrees(qat, x)) == {"a": {"int8"}, "b": {"int8"}}


def test_1x1_kernels_are_not_zeroed_by_pruning_and_qat(keras, data):
    qat = xnn_tf.quantize_aware(small(keras))
    qat.compile("adam", "mse")
    qat.fit(*data, epochs=4, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5, end=0.5)])
    assert {row.layer.rpartition("/")[2]: row.sparsity for row in xnn_tf.sparsity(qat)} == {"conv": 0.5, "out": 0.5}
    result = assert_file_agrees(qat, data[0])
    zeros = [
        np.mean(n.inputs[1].value == 0) for n in result.report.graph.nodes if n.op in ("CONV_2D", "FULLY_CONNECTED")
    ]
    assert all(0.5 <= share < 0.7 for share in zeros)


def test_pruned_stays_pruned(keras, data):
    model = small(keras)
    kernel = model.get_layer("out").kernel
    kernel.assign(np.where(np.arange(48 * 2).reshape(48, 2) % 3 == 0, kernel.numpy(), 0))
    zeros = kernel.numpy() == 0
    qat = xnn_tf.quantize_aware(model)
    qat.compile("adam", "mse")
    qat.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(target_sparsity=None)])
    assert not qat.get_layer("quant_out").layer.kernel.numpy()[zeros].any()
    (dense,) = [n for n in converter.convert(qat).report.graph.nodes if n.op == "FULLY_CONNECTED"]
    assert not dense.inputs[1].value.T[zeros].any() and dense.inputs[1].value.any()


def test_clustered_stays_clustered(keras, rng):
    layers = keras.layers
    model = keras.Sequential([layers.Input((40,)), layers.Dense(30, "relu", name="a"), layers.Dense(2, name="b")])
    values = rng.normal(size=7).astype(np.float32)
    kernel = model.get_layer("a").kernel
    kernel.assign(rng.choice([0, *values], kernel.shape))
    x = rng.normal(size=(64, 40)).astype(np.float32)
    qat = xnn_tf.quantize_aware(model)
    qat.compile("adam", "mse")
    qat.fit(x, x[:, :2], epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(clusters=None, include="*/a")])
    inner = qat.get_layer("quant_a").layer.kernel.numpy()
    assert np.unique(inner).size <= 8 and not np.array_equal(np.unique(inner), np.unique([0, *values]))
    (stored,) = [n.inputs[1] for n in assert_file_agrees(qat, x).report.graph.nodes if n.name == "a"]
    assert np.unique(stored.value).size <= 8


def test_nested_models_are_not_refused(keras, data):
    layers = keras.layers
    block_in = layers.Input((4, 4, 3))
    z = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(3, 1, name="inner")(block_in)))
    block = keras.Model(block_in, z, name="block")
    inputs = layers.Input((4, 4, 2))
    z = block(layers.Conv2D(3, 1, name="before")(inputs))
    model = keras.Model(inputs, layers.Dense(2, name="out")(layers.Flatten()(z)))
    qat = trained(keras, model, *data, 1)
    assert set.union(*computes_in(assert_file_agrees(qat, data[0])).values()) == {"int8"}
    assert qat.get_layer("quant_inner").batch_norm is not None


def test_subclassed_models_are_not_refused(keras, data):
    class Block(keras.layers.Layer):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.conv = keras.layers.Conv2D(2, 1, name="conv")
            self.norm = keras.layers.BatchNormalization(name="norm")
            self.add = keras.layers.Add()

        def call(self, x):
            return self.add([x, self.norm(self.conv(x))])

    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="subclassed")
            self.block = Block(name="block")
            self.flat = keras.layers.Flatten()
            self.out = keras.layers.Dense(2, name="out")

        def call(self, x):
            return self.out(self.flat(self.block(x)))

    model = Net()
    expected = model(data[0]).numpy()
    qat = xnn_tf.quantize_aware(model, calibration=data[0])
    assert np.abs(qat.predict(data[0], verbose=0) - expected).max() < 0.1 * np.abs(expected).max()
    qat.compile("adam", "mse")
    qat.fit(*data, verbose=0)
    assert set.union(*computes_in(assert_file_agrees(qat, data[0])).values()) == {"int8"}

    class Opaque(keras.Model):
        def call(self, x):
            return tf.constant(np.asarray(x).sum())

    opaque = Opaque(name="opaque")
    opaque(data[0])
    with pytest.raises(UnsupportedError, match=r"model 'opaque' \(Opaque\) is subclassed.*QuantizeWrapper"):
        xnn_tf.quantize_aware(opaque)

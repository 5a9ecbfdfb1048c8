"""What counts and measures while a model trains does so in several replicas, each of which has a part of the batch."""

import subprocess
import sys

import pytest

START = """
import numpy as np
import tensorflow as tf
import {keras} as keras
import xnn_tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
layers, rng = keras.layers, np.random.default_rng(0)
"""

NEURONS = """
images = rng.normal(size=(32, 8, 8, 3)).astype("float32")

def residual(policy):
    def conv(filters, name):
        return layers.Conv2D(filters, 3, padding="same", name=name, dtype=policy)
    inputs = layers.Input((8, 8, 3))
    x = layers.ReLU()(layers.BatchNormalization(dtype=policy)(conv(8, "c0")(inputs)))
    y = layers.ReLU()(layers.BatchNormalization(dtype=policy)(conv(6, "c1")(x)))
    y = layers.BatchNormalization(dtype=policy)(conv(8, "c2")(y))
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.Add()([x, y])))
    model = keras.Model(inputs, layers.Dense(2, name="out", dtype="float32")(x))
    model.compile("adam", "mse")
    return model

PAIRS = [("float32", "bn_gamma"), ("float32", "taylor"), ("mixed_bfloat16", "l2"), ("mixed_float16", "taylor")]
for policy, criterion in PAIRS:
    with strategy.scope():
        model = residual(policy)
    prune = xnn_tf.NeuronPruneCallback(0.5, criterion=criterion, ranking="layer", frequency=1, begin=1)
    logs = model.fit(images, images.mean((1, 2))[:, :2], batch_size=8, epochs=2, verbose=0, callbacks=[prune])
    assert logs.history["pruned_neurons"][-1] == 0.5, (policy, criterion)
    kernels = {name: np.asarray(model.get_layer(name).kernel.numpy(), "float32") for name in ("c0", "c1", "c2")}
    columns = {name: ~kernel.any((0, 1, 2)) for name, kernel in kernels.items()}
    assert columns["c1"].sum() == 3 and (columns["c1"] == ~kernels["c2"].any((0, 1, 3))).all()
    assert columns["c0"].sum() == 4 and (columns["c0"] == columns["c2"]).all()
    for name, kernel in kernels.items():  # the same in both replicas
        variable = getattr(model.get_layer(name).kernel, "value", model.get_layer(name).kernel)
        for each in getattr(variable, "values", []):
            np.testing.assert_array_equal(each.numpy(), kernel)
    small = xnn_tf.shrink(model)
    assert small.get_layer("c1").filters == 3
    np.testing.assert_allclose(small(images[:4]), model(images[:4]), atol=1e-2 if "mixed" in policy else 1e-5)

with strategy.scope():  # five units whose results nobody reads
    model = keras.Sequential([layers.Input((6,)), layers.Dense(20, "relu", name="a"), layers.Dense(10, name="b")])
    kernel = model.get_layer("b").kernel.numpy()
    kernel[:5] = 0
    model.get_layer("b").set_weights([kernel, np.zeros(10, "float32")])
    model.get_layer("b").trainable = False
    model.compile(keras.optimizers.SGD(0.01), "mse")
x = rng.normal(size=(64, 6)).astype("float32")
prune = xnn_tf.NeuronPruneCallback(
    0.25, criterion="taylor", ranking="layer", include="a", begin=4, schedule="constant")
model.fit(x, rng.normal(size=(64, 10)), batch_size=8, verbose=0, callbacks=[prune])
assert (~model.get_layer("a").kernel.numpy().any(axis=0)).tolist() == [True] * 5 + [False] * 15
"""

RANGES = """
x = np.float32([1, 3, 4, 8, 5, 9])[:, None] * np.float32([1, -2])  # in pairs: a batch, half of it for each replica
for activations in (8, 16):
    recipe = {"activations": activations, "freeze_batch_norm": 2}
    net = [layers.Input((2,)), layers.Dense(4, name="first"), layers.BatchNormalization(), layers.Dense(1, name="out")]
    model = keras.Sequential(net)
    with strategy.scope():
        both = xnn_tf.quantize_aware(model, recipe)
        both.compile("sgd", "mse")
    both.fit(x, x[:, :1], batch_size=2, shuffle=False, epochs=1, verbose=0)
    alone = xnn_tf.quantize_aware(model, recipe)
    alone.set_weights(both.get_weights())
    found = alone.layers[1].strategy.ranges["output"]
    np.testing.assert_allclose([found.low.numpy(), found.high.numpy()], [-10, 5], rtol=1e-6)
    counts = {w.name.split("/")[-1].split(":")[0]: int(w.numpy()) for w in alone.weights if "int" in str(w.dtype)}
    assert set(counts.values()) == {3}, counts
    assert np.abs(xnn_tf.integer_forward(alone)(x) - alone.predict(x, verbose=0)).max() < 0.2
"""


@pytest.mark.slow
@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
@pytest.mark.parametrize("script", [NEURONS, RANGES], ids=["neurons", "ranges"])
def test_two_replicas(repository, keras, script):
    command = [sys.executable, "-c", START.replace("{keras}", keras) + script]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stderr[-3000:]

"""Few values for many weights, trained in `fit` and in custom loops, of both Kerases."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from schema import InputError
from xnn_tf.clustered_kernel import ClusteredKernel
from xnn_tf.kernels import find_kernels


def values(layer, weight="kernel"):
    kernel = np.asarray(getattr(layer, weight).numpy(), np.float64)
    return np.unique(kernel[kernel != 0])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"init": "linear", "begin": 5, "end": 9},
        {"init": "density", "begin": 0.5, "end": 1.0},
        {"end": 0},
    ],
    ids=str,
)
def test_at_most_so_many_values_in_each_kernel(dense_model, data, arguments):
    model = dense_model()
    history = model.fit(
        *data, batch_size=8, epochs=4, verbose=0, callbacks=[xnn_tf.ClusterCallback(6, **arguments)]
    ).history
    assert 1 < values(model.get_layer("hidden")).size <= 6
    assert 1 < values(model.get_layer("out")).size <= 6
    assert history["clustered"][-1] == 1.0
    assert model.get_layer("hidden").kernel.constraint is None


@pytest.mark.parametrize("name", ["momentum", "moving_average"])
@pytest.mark.parametrize("compile_arguments", [{"steps_per_execution": 3}, {"jit_compile": True}], ids=str)
def test_optimizers_and_ways_of_compiling(keras, dense_model, data, name, compile_arguments):
    optimizer = {
        "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
        "moving_average": lambda: keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.9),
    }[name]()
    model = dense_model(optimizer, **compile_arguments)
    model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=[xnn_tf.ClusterCallback(4)])
    assert [values(layer).size <= 4 for layer in model.layers] == [True, True]


@pytest.mark.parametrize("order", [1, -1])
def test_pruned_in_the_same_fit(dense_model, data, zeros, order):
    model = dense_model()
    callbacks = [xnn_tf.PruneCallback(0.7, frequency=1), xnn_tf.ClusterCallback(5)][::order]
    history = model.fit(*data, batch_size=8, epochs=4, verbose=0, callbacks=callbacks).history
    assert [zeros(layer) for layer in model.layers] == [42, 14]
    assert [values(layer).size <= 5 for layer in model.layers] == [True, True]
    assert (history["sparsity"][-1], history["clustered"][-1]) == (0.7, 1.0)


def test_pruned_before(dense_model, data):
    model = dense_model()
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.6, schedule="constant")])
    pruned = [layer.kernel.numpy() == 0 for layer in model.layers]
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(5, begin=0.25)])
    for layer, mask in zip(model.layers, pruned, strict=True):
        np.testing.assert_array_equal(layer.kernel.numpy() == 0, mask)
        assert values(layer).size <= 5


def test_values_move_by_the_mean_of_their_members_updates(keras, data):
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2, use_bias=False, name="out")])
    kernel = model.layers[-1].kernel
    start = np.array([[-1, 2], [2, -1], [0, 2], [-1, 0], [2, 2], [0, -1]], np.float32) / 4
    kernel.assign(start)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(data[0]) - data[1]) ** 2)
    gradient = np.asarray(tape.gradient(loss, model.trainable_variables)[0])
    expected = start.copy()
    for value in (-0.25, 0.5):
        expected[start == value] -= 0.1 * gradient[start == value].sum() / np.sum(start == value)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(*data, batch_size=64, verbose=0, callbacks=[xnn_tf.ClusterCallback(2)])
    np.testing.assert_allclose(kernel.numpy(), expected, atol=1e-6)


def test_weights_change_their_value_until_the_end_of_the_schedule(keras, data):
    def partition(kernel):
        return np.unique(kernel, return_inverse=True)[1].tolist()

    class Record(keras.callbacks.Callback):
        partitions = []

        def on_epoch_end(self, epoch, logs=None):
            self.partitions = [*self.partitions, partition(self.model.layers[-1].kernel.numpy())]

    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10), keras.layers.Dense(2, name="out")])
    model.compile(keras.optimizers.SGD(0.3), "mse")
    record = Record()
    cluster = xnn_tf.ClusterCallback(4, end=0.5)
    model.fit(*data, batch_size=8, epochs=10, verbose=0, callbacks=[cluster, record])
    assert any(one != record.partitions[0] for one in record.partitions[1:5])
    assert all(one == record.partitions[5] for one in record.partitions[6:])


@pytest.mark.parametrize("compiled", ["before", "after", "never"])
def test_a_custom_loop(keras, dense_model, data, compiled):
    model = dense_model()
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )

    if compiled != "never":
        train_step = tf.function(train_step)
    if compiled == "before":  # traced without the projection
        train_step(*data)
    cluster = xnn_tf.ClusterCallback(4, begin=0.25)
    cluster.start(model, total_steps=12)
    seen = []
    for _ in range(12):
        train_step(*data)
        seen.append((cluster.step(), values(model.get_layer("hidden")).size <= 4))
    cluster.finish()
    assert seen == [(0.0, False)] * 2 + [(1.0, True)] * 10
    train_step(*data)
    assert values(model.get_layer("hidden")).size > 4  # nothing holds them any longer


def test_training_that_goes_on_begins_with_the_values_that_there_are(dense_model, data):
    model = dense_model("sgd")
    model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(5)])
    before = model.get_layer("hidden").kernel.numpy()
    cluster = xnn_tf.ClusterCallback(5, begin=0.5)
    cluster.start(model, total_steps=10)
    np.testing.assert_allclose(model.get_layer("hidden").kernel.numpy(), before, rtol=1e-6)
    assert cluster.step() == 1.0
    cluster.finish()
    for callback in (xnn_tf.ClusterCallback(None), xnn_tf.ClusterCallback(5, begin=0.9, end=1.0)):
        model.fit(*data, epochs=2, verbose=0, callbacks=[callback])
        assert [values(layer).size <= 5 for layer in model.layers] == [True, True]
    assert (model.get_layer("hidden").kernel.numpy() != before).any()
    model.fit(*data, verbose=0)
    assert values(model.get_layer("hidden")).size > 5


def test_keeping_leaves_alone_what_is_not_clustered(dense_model, data):
    model = dense_model()
    model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(5, include="out")])
    model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(None)])
    assert values(model.get_layer("out")).size <= 5
    assert values(model.get_layer("hidden")).size > 50


def test_keeping_needs_no_length_of_the_training(dense_model):
    cluster = xnn_tf.ClusterCallback(None)
    cluster.start(dense_model())
    assert cluster.step() == 0.0
    cluster.finish()


def test_an_interrupted_fit_leaves_nothing_behind(keras, dense_model, data):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                raise KeyboardInterrupt

    model, callback = dense_model(), xnn_tf.ClusterCallback(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, batch_size=8, verbose=0, callbacks=[callback, Interrupt()])
    model.fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.ClusterCallback(2)])
    assert values(model.get_layer("hidden")).size == 2
    model.fit(*data, batch_size=8, verbose=0)
    model.fit(*data, batch_size=8, verbose=0, callbacks=[callback])
    assert values(model.get_layer("hidden")).size == 3


def test_weights_that_another_callback_brings_back_at_the_end(keras, dense_model, data):
    model = dense_model(keras.optimizers.Adam(0.5))
    stop = keras.callbacks.EarlyStopping(monitor="loss", patience=1, restore_best_weights=True)
    model.fit(*data, batch_size=8, epochs=30, verbose=0, callbacks=[stop, xnn_tf.ClusterCallback(3, end=0.1)])
    assert [values(layer).size <= 3 for layer in model.layers] == [True, True]


def test_half_precision(keras, data):
    layers = [keras.layers.Dense(8, dtype="float16", name="half"), keras.layers.Dense(2, dtype="mixed_bfloat16")]
    model = keras.Sequential([keras.layers.Input((6,)), *layers])
    model.compile("sgd", "mse")
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(4)])
    assert [values(layer).size <= 4 for layer in layers] == [True, True]


def test_selection_and_numbers_by_layer(keras, rng):
    inputs = keras.layers.Input((8, 8, 3))
    x = keras.layers.Conv2D(6, 3, name="stem")(inputs)
    x = keras.layers.DepthwiseConv2D(3, name="dw")(x)
    x = keras.layers.Conv2D(6, 1, name="pw")(x)
    model = keras.Model(inputs, keras.layers.Dense(5, name="head")(keras.layers.GlobalAveragePooling2D()(x)))
    model.compile("adam", "mse")
    x, y = rng.normal(size=(16, 8, 8, 3)).astype(np.float32), rng.normal(size=(16, 5)).astype(np.float32)
    cluster = xnn_tf.ClusterCallback(8, exclude="head", per_layer={"stem": 1, "pw": 3})
    model.fit(x, y, epochs=2, batch_size=8, verbose=0, callbacks=[cluster])
    depthwise = "depthwise_kernel" if keras.__name__ == "tf_keras" else "kernel"
    assert values(model.get_layer("stem")).size == 1
    assert 1 < values(model.get_layer("pw")).size <= 3
    assert values(model.get_layer("dw"), depthwise).size == 54
    assert values(model.get_layer("head")).size == 30
    with pytest.raises(InputError, match="stem/kernel is already clustered"):
        model.fit(x, y, verbose=0, callbacks=[xnn_tf.ClusterCallback(8), xnn_tf.ClusterCallback(4)])


def test_a_model_that_its_first_step_builds(keras, data):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Net()
    model.compile("adam", "mse")
    model.fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.ClusterCallback(3)])
    assert values(model.dense).size <= 3


def test_training_that_ends_before_it_begins_warns(dense_model, data):
    with pytest.warns(UserWarning, match="before weights were to be shared"):
        dense_model().fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.ClusterCallback(4, begin=50, end=60)])


def test_no_warnings_in_ordinary_use(dense_model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dense_model().fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.ClusterCallback(4)], validation_data=data)


def test_nothing_is_left_on_a_kernel(dense_model):
    model = dense_model()
    kernel = find_kernels(model)[0]
    first = ClusteredKernel(kernel, model, 4, "linear")
    first.detach()
    ClusteredKernel(kernel, model, 4, "linear").detach()
    assert kernel.variable.constraint is None


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"clusters": 0}, "clusters=0"),
        ({"clusters": 300}, "clusters=300"),
        ({"clusters": 4.0}, r"clusters=4\.0"),
        ({"init": "random"}, "init='random'"),
        ({"per_layer": {"a": -1}}, r"per_layer\['a'\]=-1"),
        ({"begin": 9, "end": 3}, "end=3"),
    ],
    ids=str,
)
def test_useless_arguments_are_refused(arguments, names):
    with pytest.raises(InputError, match=names):
        xnn_tf.ClusterCallback(**arguments)

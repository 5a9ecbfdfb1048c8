"""Pruning where `fit` is not used."""

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from schema import InputError


@pytest.fixture
def model(keras):
    return keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10, "relu"), keras.layers.Dense(2)])


def gradients_of(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    return tape.gradient(loss, model.trainable_variables)


@pytest.mark.parametrize("compiled", ["before", "after", "never"])
def test_an_optimizer(keras, model, data, compiled):
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build(model.trainable_variables)

    def train_step(x, y):
        optimizer.apply_gradients(zip(gradients_of(model, x, y), model.trainable_variables, strict=True))

    if compiled != "never":
        train_step = tf.function(train_step)
    if compiled == "before":  # traced without masks
        train_step(*data)
    prune = xnn_tf.PruneCallback(0.8, begin=0.1, end=0.5, frequency=2)
    prune.start(model, total_steps=20)
    seen = []
    for _ in range(20):
        train_step(*data)
        seen.append(prune.step())
        assert seen[-1] == xnn_tf.sparsity(model).total.sparsity
    prune.finish()
    assert seen[0] == 0.0
    assert seen == sorted(seen)
    assert seen[9:] == [0.8] * 11
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [48, 16]
    train_step(*data)
    assert xnn_tf.sparsity(model).total.zeros < 40  # nothing holds them any longer, in a step traced with masks either


def test_updates_without_an_optimizer(model, data):
    prune = xnn_tf.PruneCallback(0.5, schedule="constant")
    prune.start(model)
    for _ in range(3):
        for gradient, variable in zip(gradients_of(model, *data), model.trainable_variables, strict=True):
            variable.assign_sub(0.1 * gradient)
        assert prune.step() == 0.5
        assert [row.zeros for row in xnn_tf.sparsity(model)] == [30, 10]
    prune.finish()


def test_train_on_batch(model, data):
    model.compile("adam", "mse")
    model.train_on_batch(*data)  # an older trace
    prune = xnn_tf.PruneCallback(0.5, end=4)
    prune.start(model, total_steps=6)
    for _ in range(6):
        model.train_on_batch(*data)
        prune.step()
    prune.finish()
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [30, 10]


def test_a_callback_list(keras, model, data):
    optimizer = keras.optimizers.Adam(0.05)
    callbacks = keras.callbacks.CallbackList([xnn_tf.PruneCallback(0.8, frequency=1)], model=model, epochs=3, steps=4)
    callbacks.on_train_begin()
    logs = {}
    for epoch in range(3):
        callbacks.on_epoch_begin(epoch)
        for batch in range(4):
            callbacks.on_train_batch_begin(batch)
            optimizer.apply_gradients(zip(gradients_of(model, *data), model.trainable_variables, strict=True))
            callbacks.on_train_batch_end(batch, {})
        logs = {}
        callbacks.on_epoch_end(epoch, logs)
    callbacks.on_train_end(logs)
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [48, 16]


def test_a_resumed_loop(model):
    prune = xnn_tf.PruneCallback(0.8, end=10, frequency=1)
    prune.start(model, initial_step=5)
    assert xnn_tf.sparsity(model).total.sparsity == pytest.approx(0.8 * (1 - 0.5**3), abs=0.02)
    prune.start(model, initial_step=10)  # starting again replaces what an interrupted loop left
    prune.finish()
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [48, 16]


def test_a_model_that_is_built_by_its_first_step(keras, data):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Net()
    prune = xnn_tf.PruneCallback(0.5, schedule="constant")
    prune.start(model)
    model(data[0])
    assert prune.step() == 0.5
    prune.finish()
    assert xnn_tf.sparsity(model).total.zeros == 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_weights_of_other_types(keras, dtype):
    layer = keras.layers.Dense(9, dtype=dtype, kernel_initializer="glorot_normal")
    model = keras.Sequential([keras.layers.Input((7,), dtype=dtype), layer])
    prune = xnn_tf.PruneCallback(0.5, schedule="constant")
    prune.start(model)
    prune.finish()
    kernel = np.abs(np.asarray(layer.kernel.numpy()).astype(np.float64))
    assert np.sum(kernel == 0) == 32
    assert layer.kernel.dtype == dtype


def test_misuse_is_explained(model, data):
    prune = xnn_tf.PruneCallback(0.5)
    with pytest.raises(InputError, match=r"call start"):
        prune.step()
    with pytest.raises(InputError, match="total_steps"):
        prune.start(model)
    prune.start(model, total_steps=10)
    with pytest.raises(Exception, match=r"outside of tf\.function"):  # AutoGraph wraps it in an error of its own
        tf.function(prune.step)()
    with pytest.raises(InputError, match="already pruned by another"):
        xnn_tf.PruneCallback(0.5).start(model, total_steps=10)
    with pytest.warns(UserWarning, match="ended at step 0"):
        prune.finish()
    xnn_tf.PruneCallback(None).start(model)
    with pytest.raises(InputError, match="Keras model"):
        prune.start(object(), total_steps=10)

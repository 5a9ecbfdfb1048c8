"""Masks hold after every single update of the optimizer, not only where callbacks look."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf

HIDDEN_LEFT, OUT_LEFT = 60 - round(0.7 * 60), 20 - round(0.7 * 20)


@pytest.fixture
def probed(keras):
    """Builds a model that counts, inside its train step and right after the update, the weights that are not zero."""

    class Probed(keras.Sequential):
        def train_step(self, data):
            logs = super().train_step(data)
            for layer, count in zip(self.layers[-2:], self.counts, strict=True):
                left = tf.math.count_nonzero(tf.convert_to_tensor(layer.kernel), dtype=tf.int32)
                count.assign(tf.concat([count[1:], [left]], axis=0))
            return logs

    def build(optimizer, **compile_arguments):
        model = Probed(
            [keras.layers.Input((6,)), keras.layers.Dense(10, "relu", name="hidden"), keras.layers.Dense(2, name="out")]
        )
        model.counts = [tf.Variable(tf.fill([16], -1), trainable=False, name=f"count_{i}") for i in range(2)]
        model.compile(optimizer, "mse", **compile_arguments)
        return model

    return build


def optimizers(keras, name):
    three = keras.__name__ == "keras"
    optimizer = {
        "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "weight_decay": lambda: keras.optimizers.AdamW(0.05, weight_decay=0.1),
        "moving_average": lambda: keras.optimizers.Adam(
            0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
        ),
        "accumulation": lambda: keras.optimizers.Adam(0.05, gradient_accumulation_steps=2),
        "legacy": lambda: keras.optimizers.legacy.Adam(0.05),
    }
    if name == ("legacy" if three else "accumulation"):
        pytest.skip(f"{keras.__name__} has no such optimizer")
    return optimizer[name]()


def assert_held(model):
    for count, left in zip(model.counts, (HIDDEN_LEFT, OUT_LEFT), strict=True):
        assert count.numpy().tolist() == [left] * 16
    assert [row.size - row.zeros for row in xnn_tf.sparsity(model)] == [HIDDEN_LEFT, OUT_LEFT]


@pytest.mark.parametrize("name", ["momentum", "weight_decay", "moving_average", "accumulation", "legacy"])
def test_optimizers(keras, probed, data, name):
    model = probed(optimizers(keras, name))
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, schedule="constant")])
    assert_held(model)


@pytest.mark.parametrize(
    "compile_arguments",
    [{"steps_per_execution": 4}, {"steps_per_execution": 8, "jit_compile": True}],
    ids=str,
)
def test_ways_of_compiling(keras, probed, data, compile_arguments):
    model = probed(optimizers(keras, "weight_decay"), **compile_arguments)
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, schedule="constant")])
    assert_held(model)


@pytest.mark.parametrize(("policy", "jit"), [("mixed_float16", True), ("mixed_bfloat16", False)])
def test_mixed_precision(keras, probed, data, policy, jit):
    before = keras.mixed_precision.global_policy() if keras.__name__ == "tf_keras" else keras.config.dtype_policy()
    keras.mixed_precision.set_global_policy(policy)
    try:
        # Keras 3 scales the loss by itself, tf_keras too: compile() wraps the optimizer under mixed_float16.
        model = probed(optimizers(keras, "momentum"), jit_compile=jit)
    finally:
        keras.mixed_precision.set_global_policy(before)
    if policy == "mixed_float16":
        assert "LossScale" in type(model.optimizer).__name__
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, schedule="constant")])
    assert_held(model)


def test_a_step_with_an_overflow_that_the_loss_scale_optimizer_skips(keras, probed, data):
    optimizer = keras.mixed_precision.LossScaleOptimizer(optimizers(keras, "momentum"), initial_scale=2.0**127)
    model = probed(optimizer)
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, schedule="constant")])
    assert_held(model)


def test_a_train_function_that_an_earlier_fit_has_traced(keras, probed, data):
    model = probed(optimizers(keras, "momentum"))
    model.fit(*data, batch_size=8, epochs=2, verbose=0)
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, schedule="constant")])
    assert_held(model)
    model.fit(*data, batch_size=8, epochs=2, verbose=0)  # and no mask stays behind in it
    assert model.counts[0].numpy().max() > HIDDEN_LEFT


def test_zeros_only_grow_while_sparsity_rises(keras, probed, data):
    model = probed(optimizers(keras, "momentum"))
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7, frequency=1, end=0.5)])
    counts = model.counts[0].numpy()
    assert (np.diff(counts) <= 0).all()
    shares = [0.7 * (1 - (1 - step / 8) ** 3) for step in range(9)]
    assert counts.tolist() == [60 - round(60 * share) for share in shares[:8]] + [HIDDEN_LEFT] * 8


def test_moving_averages_are_masked_too(keras, probed, data):
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.9)
    model = probed(optimizer)
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.7)])
    assert xnn_tf.sparsity(model).total.zeros == 80 - HIDDEN_LEFT - OUT_LEFT  # fit ends by copying the averages
    optimizer.finalize_variable_values(model.trainable_variables)  # as a custom loop would
    assert xnn_tf.sparsity(model).total.zeros == 80 - HIDDEN_LEFT - OUT_LEFT


def test_swapped_moving_averages_have_the_zeros(data):
    keras = pytest.importorskip("keras")

    class Seen(keras.callbacks.Callback):
        def on_test_begin(self, logs=None):
            self.zeros = xnn_tf.sparsity(self.model).total.zeros

    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.9)
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10)])
    model.compile(optimizer, lambda y, p: keras.ops.mean(keras.ops.square(y[:, :1] - p)))
    prune, swap, seen = xnn_tf.PruneCallback(0.7), keras.callbacks.SwapEMAWeights(), Seen()
    for callbacks in ([prune, swap, seen], [swap, prune, seen]):
        model.fit(*data, batch_size=8, epochs=2, verbose=0, validation_data=data, callbacks=callbacks)
        assert seen.zeros == 42


MIRRORED = """
import numpy as np
import tensorflow as tf
import keras, tf_keras
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import xnn_tf
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
for keras in (keras, tf_keras):
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10)])
        model.compile(keras.optimizers.AdamW(0.05), "mse", metrics=["mae"])
    prune = xnn_tf.PruneCallback(0.7)
    history = model.fit(x, x[:, :1], batch_size=8, epochs=2, verbose=0, callbacks=[prune]).history
    kernel = model.layers[-1].kernel
    replicas = [np.array(v) for v in strategy.experimental_local_results(getattr(kernel, "_value", kernel))]
    assert [np.sum(v == 0) for v in replicas] == [42, 42], replicas
    assert history["sparsity"][-1] == 0.7
    model.fit(x, x[:, :1], batch_size=8, verbose=0)
    assert xnn_tf.sparsity(model).total.zeros == 0
"""


@pytest.mark.slow
def test_a_distribution_strategy(repository):
    command = [sys.executable, "-c", MIRRORED]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr

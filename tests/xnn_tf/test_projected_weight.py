"""Weights that hold allowed values only, while what hides behind them trains; and company on one variable."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from schema import InputError
from xnn_tf.constraint_chain import attach, chain_of, detach
from xnn_tf.kernels import find_kernels
from xnn_tf.projected_weight import Projection
from xnn_tf.weight_mask import WeightMask

STEP = 0.25


def on_grid(shadow):
    return STEP * tf.round(shadow / STEP)


def assert_on_grid(weight):
    values = np.asarray(weight.numpy(), np.float64)
    np.testing.assert_array_equal(values, STEP * np.round(values / STEP))
    assert np.unique(values).size > 1


def followed_by_hand(model, optimizer, data, steps):
    """The shadow and the weight after `steps` full-batch steps, by the book: gradients at Q(s), updates to s."""
    kernel, bias = model.layers[-1].trainable_weights
    shadow = tf.Variable(kernel.numpy())
    kernel.assign(on_grid(shadow))
    free = tf.Variable(bias.numpy())
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(data[0]) - data[1]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, [shadow, free], strict=True))
        kernel.assign(on_grid(shadow))
        bias.assign(free)
    return shadow.numpy(), kernel.numpy()


@pytest.fixture
def linear(keras):
    def build(optimizer="sgd", **compile_arguments):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2, name="out")])
        model.compile(optimizer, "mse", **compile_arguments)
        return model

    return build


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_it_is_the_straight_through_estimator(keras, linear, data, name):
    make = {
        "momentum": lambda module: module.optimizers.SGD(0.02, momentum=0.9),
        "adam": lambda module: module.optimizers.Adam(0.02),
    }[name]
    tf_keras = pytest.importorskip("tf_keras")
    expected, weight = followed_by_hand(linear(), make(tf_keras), data, 30)
    model = linear(make(keras))
    projection = Projection(model.layers[-1].kernel, model, on_grid)
    projection.apply()
    model.fit(*data, batch_size=64, epochs=30, shuffle=False, verbose=0)
    np.testing.assert_allclose(projection.shadow(), expected, atol=2e-5)
    np.testing.assert_array_equal(model.layers[-1].kernel.numpy(), weight)
    assert np.abs(projection.residual.numpy()).max() <= STEP / 2 + 1e-6


@pytest.mark.parametrize(
    "compile_arguments", [{"jit_compile": True}, {"steps_per_execution": 4, "jit_compile": False}], ids=str
)
def test_ways_of_compiling(linear, data, compile_arguments):
    model = linear("adam", **compile_arguments)
    projection = Projection(model.layers[-1].kernel, model, on_grid)
    model.fit(*data, batch_size=8, epochs=4, verbose=0)
    assert_on_grid(model.layers[-1].kernel)
    assert projection.residual.numpy().any()


def test_a_custom_loop_whose_step_was_traced_before(keras, linear, data):
    model = linear()
    kernel = model.layers[-1].kernel
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(data[0]) - data[1]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    train_step()
    projection = Projection(kernel, model, on_grid)
    projection.apply()
    start = kernel.numpy()
    for _ in range(40):
        train_step()
        projection.apply()
        assert_on_grid(kernel)
    assert (kernel.numpy() != start).any()  # steps of a hundredth of the grid's have added up


def test_weights_of_mixed_precision_and_of_half(keras, data):
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2, dtype="float16", name="out")])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    projection = Projection(model.layers[-1].kernel, model, on_grid)
    model.fit(*data, batch_size=8, verbose=0)
    assert_on_grid(model.layers[-1].kernel)
    assert projection.shadow().dtype == np.float32
    policy = keras.layers.Dense(2, dtype="mixed_float16", name="out")
    model = keras.Sequential([keras.layers.Input((6,)), policy])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    Projection(policy.kernel, model, on_grid)
    model.fit(*data, batch_size=8, verbose=0)
    assert_on_grid(policy.kernel)


@pytest.mark.parametrize(
    ("order", "leaving"),
    zip(itertools.permutations(["mask", "other mask", "projection"]), [0, 1, 2, 1, 0, 2], strict=True),
    ids=str,
)
def test_company_in_any_order(keras, data, order, leaving):
    model = keras.Sequential(
        [keras.layers.Input((6,)), keras.layers.Dense(2, kernel_constraint=keras.constraints.NonNeg(), name="out")]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse")
    (kernel,) = find_kernels(model)
    rows, columns = np.zeros((6, 2), bool), np.zeros((6, 2), bool)
    rows[2:4], columns[:, 1] = True, True

    def shifted(shadow):  # gives masked weights a value that the masks must take away
        return on_grid(shadow) + STEP

    held = {}
    for name in order:
        if name == "projection":
            held[name] = Projection(kernel.variable, model, shifted)
        else:
            held[name] = WeightMask(kernel, model, name)
            held[name].set_zeros(rows if name == "mask" else columns)
    model.fit(*data, batch_size=8, epochs=2, verbose=0)
    weight = kernel.variable.numpy()
    np.testing.assert_array_equal(weight == 0, rows | columns)
    assert (weight >= 0).all()
    assert_on_grid(kernel.variable)
    assert (held["projection"].shadow()[rows | columns] == 0).all()

    gone = order[leaving]
    held.pop(gone).detach()
    model.make_train_function(force=True)
    model.fit(*data, batch_size=8, epochs=2, verbose=0)
    weight = kernel.variable.numpy()
    left = [mask for name, mask in (("mask", rows), ("other mask", columns)) if name != gone]
    assert all((weight[mask] == 0).all() for mask in left)
    if gone == "projection":
        assert (weight != STEP * np.round(weight / STEP)).any()
    else:
        assert_on_grid(kernel.variable)
        assert np.count_nonzero(weight == 0) == np.count_nonzero(left[0])
    for remaining in held.values():
        remaining.detach()
    assert type(kernel.variable.constraint).__name__ == "NonNeg"


def test_a_step_traced_with_a_projection_forgets_it(linear, data):
    model = linear("adam")
    kernel = model.layers[-1].kernel
    projection = Projection(kernel, model, on_grid)
    model.train_on_batch(*data)
    assert_on_grid(kernel)
    projection.detach()
    model.train_on_batch(*data)
    assert (kernel.numpy() != on_grid(kernel.numpy()).numpy()).any()
    assert kernel.constraint is None


def test_a_grid_that_moves_while_training(linear, data):
    model = linear("adam")
    kernel = model.layers[-1].kernel
    step = tf.Variable(0.5)
    Projection(kernel, model, lambda shadow: step * tf.round(shadow / step))
    model.train_on_batch(*data)
    for size in (0.25, 0.125):
        step.assign(size)
        model.train_on_batch(*data)
        np.testing.assert_array_equal(kernel.numpy() % size, 0)
    assert (kernel.numpy() % 0.25 != 0).any()


def test_weights_brought_back_start_it_again(linear, data):
    model = linear("adam")
    kernel = model.layers[-1].kernel
    projection = Projection(kernel, model, on_grid)
    model.fit(*data, batch_size=8, verbose=0)
    saved, shadow = kernel.numpy(), projection.shadow()
    assert (shadow != saved).any()
    projection.restart()
    np.testing.assert_array_equal(projection.shadow(), saved)
    kernel.assign(saved)
    projection.apply()
    np.testing.assert_array_equal(kernel.numpy(), saved)


def test_one_projection_per_weight(linear):
    model = linear()
    kernel = model.layers[-1].kernel
    projection = Projection(kernel, model, on_grid)
    with pytest.raises(InputError, match="kernel is already clustered or quantized"):
        Projection(kernel, model, on_grid)
    projection.detach()
    Projection(kernel, model, on_grid).detach()


def test_pruning_looks_behind_projected_weights_and_keeps_their_grid(keras, linear, data):
    model = linear(keras.optimizers.SGD(0.05))
    kernel = model.layers[-1].kernel
    projection = Projection(kernel, model, lambda shadow: STEP * tf.sign(shadow))  # two values of one magnitude
    projection.apply()
    magnitude = np.abs(projection.shadow())
    prune = xnn_tf.PruneCallback(0.5, schedule="constant")
    prune.start(model)
    np.testing.assert_array_equal(kernel.numpy() == 0, magnitude <= np.sort(magnitude, axis=None)[5])
    model.fit(*data, batch_size=8, verbose=0)
    assert set(np.unique(kernel.numpy())) <= {-STEP, 0, STEP}
    assert np.count_nonzero(kernel.numpy() == 0) == 6
    prune.finish()


def test_a_constraint_that_somebody_sets_meanwhile_stays(keras, linear):
    if keras.__name__ == "tf_keras":
        pytest.skip("a tf.Variable's constraint cannot be set")
    kernel = linear().layers[-1].kernel
    attach(kernel, abs)
    other = keras.constraints.NonNeg()
    kernel.constraint = other
    detach(kernel, abs)
    assert kernel.constraint is other
    assert chain_of(kernel) is None


MIRRORED = """
import numpy as np
import tensorflow as tf
import keras, tf_keras
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import xnn_tf
from xnn_tf.projected_weight import Projection
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
for keras in (keras, tf_keras):
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(10)])
        model.compile(keras.optimizers.AdamW(0.01), "mse")
    kernel = model.layers[-1].kernel
    projection = Projection(kernel, model, lambda s: 0.25 * tf.round(4 * s))
    projection.apply()
    before = kernel.numpy()
    model.fit(x, x[:, :1], batch_size=8, epochs=3, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5)])
    for replica in strategy.experimental_local_results(getattr(kernel, "_value", kernel)):
        assert (replica.numpy() % 0.25 == 0).all()
        assert np.sum(replica.numpy() == 0) >= 30
    assert (kernel.numpy() != before).any() and projection.residual.numpy().any()
"""


@pytest.mark.slow
def test_a_distribution_strategy(repository):
    command = [sys.executable, "-c", MIRRORED]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr

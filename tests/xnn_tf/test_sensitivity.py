"""Targets by layer from what pruning each costs, measured on data that training does not lose."""

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from schema import InputError
from xnn_tf.sensitivity import Sensitivity, SensitivityCurve


@pytest.fixture
def uneven(keras, rng):
    """A trained model whose layer `idle` hardly matters, and its data."""
    x = rng.normal(size=(256, 8)).astype(np.float32)
    y = np.tanh(x @ rng.normal(size=(8, 2))).astype(np.float32)
    inputs = keras.layers.Input((8,))
    busy = keras.layers.Dense(24, "tanh", name="busy")(inputs)
    idle = keras.layers.Dense(24, "tanh", name="idle")(inputs)
    joined = keras.layers.Concatenate()([busy, keras.layers.Rescaling(1e-3)(idle)])
    model = keras.Model(inputs, keras.layers.Dense(2, name="out")(joined))
    model.compile(keras.optimizers.Adam(0.02), "mse")
    model.fit(x, y, batch_size=32, epochs=12, verbose=0)
    return model, x, y


def shares(model):
    return {row.layer: row.sparsity for row in xnn_tf.sparsity(model)}


def test_curves_are_the_losses_of_evaluation(uneven):
    model, x, y = uneven
    before = model.get_weights()
    found = xnn_tf.sensitivity(model, x, y, shares=(0.5, 0.9), samples=200, batch_size=64)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(curve.name for curve in found.curves) == ["busy/kernel", "idle/kernel", "out/kernel"]
    assert found.samples == 200
    for curve in found.curves:
        layer = model.get_layer(curve.name.split("/")[0])
        kernel = layer.kernel.numpy()
        for share, loss in curve.points:
            order = np.argsort(np.abs(kernel), axis=None, kind="stable")
            pruned = kernel.copy().ravel()
            pruned[order[: round(share * kernel.size)]] = 0
            layer.kernel.assign(pruned.reshape(kernel.shape))
            expected = model.evaluate(x[:200], y[:200], batch_size=200, verbose=0)
            assert loss == pytest.approx(expected, rel=1e-4)
        layer.kernel.assign(kernel)
    assert "busy/kernel" in str(found)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(50)
    again = xnn_tf.sensitivity(model, dataset, shares=(0.5, 0.9), samples=200)
    for one, other in zip(found.curves, again.curves, strict=True):
        np.testing.assert_allclose(other.points, one.points, rtol=1e-4)


@pytest.mark.parametrize("data", ["training batches", "arrays", "data set", "measured before"])
def test_the_layer_that_matters_least_is_pruned_most(uneven, data):
    model, x, y = uneven
    arguments = {
        "training batches": {"sensitivity": "auto"},
        "arrays": {"sensitivity": "auto", "sensitivity_data": (x, y)},
        "data set": {
            "sensitivity": "auto",
            "sensitivity_data": tf.data.Dataset.from_tensor_slices((x, y)).batch(64),
        },
        "measured before": {"sensitivity": xnn_tf.sensitivity(model, x, y)},
    }[data]
    prune = xnn_tf.PruneCallback(0.6, frequency=1, **arguments)
    history = model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[prune]).history
    found = shares(model)
    assert found["idle"] > 0.9 > found["busy"]
    assert xnn_tf.sparsity(model).total.sparsity == pytest.approx(0.6, abs=0.01)
    assert history["sparsity"][-1] == pytest.approx(0.6, abs=0.01)
    model.fit(x, y, batch_size=32, verbose=0, callbacks=[xnn_tf.PruneCallback(0.6, **arguments)])  # and goes on
    assert shares(model)["idle"] > 0.9
    assert xnn_tf.sparsity(model).total.sparsity >= 0.59


@pytest.mark.parametrize("steps_per_execution", [1, 2])
def test_no_batch_is_lost_to_the_training(keras, rng, steps_per_execution):
    seen = []

    class Recorded(keras.Sequential):
        def train_step(self, data):
            tf.py_function(lambda x: seen.append(int(x[0, 0])), [data[0]], [])
            return super().train_step(data)

    model = Recorded([keras.layers.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)
    x = np.repeat(np.arange(40, dtype=np.float32)[:, None], 4, axis=1)
    prune = xnn_tf.PruneCallback(0.5, sensitivity="auto")
    model.fit(x, x[:, :3], batch_size=5, epochs=2, shuffle=False, verbose=0, callbacks=[prune])
    assert seen == [5 * batch for batch in range(8)] * 2
    assert xnn_tf.sparsity(model).total.zeros == 6


def test_layers_with_targets_of_their_own_keep_them(uneven):
    model, x, y = uneven
    prune = xnn_tf.PruneCallback(0.6, sensitivity="auto", per_layer={"out": 0.25})
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, callbacks=[prune])
    found = shares(model)
    assert found["out"] == 0.25
    assert (found["busy"] + found["idle"]) / 2 == pytest.approx(0.6, abs=0.01)


def test_a_custom_loop_needs_data(uneven):
    model, x, y = uneven
    with pytest.raises(InputError, match="sensitivity_data"):
        xnn_tf.PruneCallback(0.6, sensitivity="auto").start(model, total_steps=4)
    prune = xnn_tf.PruneCallback(0.6, schedule="constant", sensitivity="auto", sensitivity_data=(x, y))
    prune.start(model, total_steps=4)
    prune.step()
    prune.finish()
    assert shares(model)["idle"] > 0.9


def test_together_with_neuron_pruning(uneven):
    model, x, y = uneven
    callbacks = [xnn_tf.NeuronPruneCallback(0.25, end=0.25), xnn_tf.PruneCallback(0.8, begin=0.3, sensitivity="auto")]
    model.fit(x, y, batch_size=32, epochs=4, verbose=0, callbacks=callbacks)
    kernel = model.get_layer("busy").kernel.numpy()
    assert np.sum(~kernel.any(axis=0)) + np.sum(~model.get_layer("idle").kernel.numpy().any(axis=0)) >= 12
    assert xnn_tf.sparsity(model).total.sparsity >= 0.79


def curve(name, size, *points):
    return SensitivityCurve(name, size, points)


def test_the_last_weight_of_each_kernel_costs_the_same():
    steep = curve("steep", 100, (0.0, 1.0), (0.5, 1.1), (0.9, 2.0))
    flat = curve("flat", 300, (0.0, 1.0), (0.5, 1.0), (0.9, 1.3))
    found = Sensitivity((steep, flat), 1)
    assert found.targets(0.375) == {"steep": 0.0, "flat": 0.5}
    assert found.targets(0.5) == {"steep": 0.5, "flat": 0.5}
    assert found.targets(0.65) == pytest.approx({"steep": 0.5, "flat": 0.7})
    assert found.targets(0.95) == {"steep": 0.95, "flat": 0.95}  # more than was measured


def test_bumps_and_falls_of_a_curve_are_bridged():
    bumpy = curve("bumpy", 10, (0.0, 1.0), (0.3, 1.8), (0.6, 1.2), (0.9, 2.0))
    assert [(start, end) for _, start, end in bumpy.steps()] == [(0.0, 0.9)]
    falling = curve("falling", 10, (0.0, 1.0), (0.5, 0.5), (0.9, 3.0))
    assert falling.steps()[0] == (0.0, 0.0, 0.5)
    pruned = curve("pruned", 10, (0.4, 1.0), (0.9, 2.0))
    assert Sensitivity((pruned, falling), 1).targets(0.1)["pruned"] == 0.4


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"sensitivity": "yes"}, "sensitivity='yes'"),
        ({"sensitivity": "auto", "pattern": "2:4"}, "2:4"),
        ({"sensitivity_data": (1, 2)}, "sensitivity_data"),
    ],
    ids=str,
)
def test_useless_arguments_are_refused(arguments, names):
    with pytest.raises(InputError, match=names):
        xnn_tf.PruneCallback(0.5, **arguments)


def test_a_model_without_a_loss_and_data_without_targets(keras):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])
    x = np.zeros((8, 4), np.float32)
    with pytest.raises(InputError, match="no loss"):
        xnn_tf.sensitivity(model, x, x[:, :3])
    model.compile("sgd", "mse")
    with pytest.raises(InputError, match="y is missing"):
        xnn_tf.sensitivity(model, x)
    with pytest.raises(InputError, match="growing"):
        xnn_tf.sensitivity(model, x, x[:, :3], shares=(0.5, 0.3))

"""Whole neurons pruned while a model trains: how many, which, and that they stay so."""

import numpy as np
import pytest
import tensorflow as tf

import xnn_tf
from schema import InputError
from xnn_tf.channels.units import Role
from xnn_tf.neuron_scores import l2


@pytest.fixture
def mlp(keras):
    """Builds a compiled model of 20 and 10 hidden units."""

    def build(optimizer="adam", **arguments):
        L = keras.layers
        layers = [L.Input((6,)), L.Dense(20, "relu", name="a"), L.Dense(10, "tanh", name="b"), L.Dense(2, name="out")]
        model = keras.Sequential(layers)
        model.compile(optimizer, "mse", **arguments)
        return model

    return build


def dead(model):
    """How many neurons of each removable group have neither columns nor rows."""
    found = {}
    for group in xnn_tf.channel_groups(model).removable:
        columns = ~np.any([p.any(axis=1) for p in group.kernels(Role.COLUMN)], axis=0)
        rows = ~np.any([p.any(axis=1) for p in group.kernels(Role.ROW)], axis=0)
        assert (columns == rows).all()
        found[group.name] = int(columns.sum())
    return found


def test_columns_biases_and_rows_become_zero_and_stay_so(mlp, data):
    model = mlp()
    callback = xnn_tf.NeuronPruneCallback(0.5, frequency=1)
    history = model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=[callback]).history
    assert sum(dead(model).values()) == 15
    assert history["pruned_neurons"][-1] == 0.5
    first = model.get_layer("a")
    gone = ~first.kernel.numpy().any(axis=0)
    assert not first.bias.numpy()[gone].any()
    assert first.bias.numpy()[~gone].all()
    small = xnn_tf.shrink(model)
    assert small.get_layer("a").units + small.get_layer("b").units == 15
    np.testing.assert_allclose(small(data[0]), model(data[0]), atol=1e-5)


def test_the_same_share_of_each_layer_and_single_layers_of_their_own(mlp, data):
    model = mlp("sgd")
    callback = xnn_tf.NeuronPruneCallback(0.4, ranking="layer", schedule="constant")
    model.fit(*data, verbose=0, callbacks=[callback])
    assert dead(model) == {"a": 8, "b": 4}
    model = mlp("sgd")
    callback = xnn_tf.NeuronPruneCallback(0.5, schedule="constant", per_layer={"b": 0.2, "a": 0.7})
    model.fit(*data, verbose=0, callbacks=[callback])
    assert dead(model) == {"a": 14, "b": 2}


def test_the_smallest_norms_go_first_relative_to_their_layer(mlp, data):
    model = mlp("sgd")
    model.optimizer.learning_rate = 0.0
    model.get_layer("a").kernel.assign(100 * model.get_layer("a").kernel.numpy())
    groups = xnn_tf.channel_groups(model)
    scores = {group.name: l2(group) for group in groups.removable}
    squares = (model.get_layer("b").kernel.numpy() ** 2).sum(axis=0) + (model.get_layer("out").kernel.numpy() ** 2).sum(
        axis=1
    )
    np.testing.assert_allclose(scores["b"], np.sqrt(squares / squares.mean()), rtol=1e-5)
    limit = np.sort(np.concatenate(list(scores.values())))[9]
    model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(1 / 3, schedule="constant")])
    for layer in ("a", "b"):
        gone = ~model.get_layer(layer).kernel.numpy().any(axis=0)
        np.testing.assert_array_equal(gone, scores[layer] <= limit)


@pytest.mark.parametrize("of", ["weights", "macs"])
def test_targets_in_weights_and_multiplications(keras, rng, of):
    L = keras.layers
    convs = [L.Conv2D(8, 3, padding="same", name="a"), L.ReLU(), L.Conv2D(12, 3, name="b")]
    model = keras.Sequential([L.Input((8, 8, 3)), *convs, L.Flatten(), L.Dense(4, name="out")])
    callback = xnn_tf.NeuronPruneCallback(0.6, of=of, schedule="constant")
    callback.start(model)
    callback.finish()
    small = xnn_tf.shrink(model)

    def cost(net):
        kernels = [net.get_layer(name).kernel.shape for name in ("a", "b", "out")]
        if of == "weights":
            return net.count_params()
        return np.prod(kernels[0]) * 64 + np.prod(kernels[1]) * 36 + np.prod(kernels[2])

    assert 0.25 < cost(small) / cost(model) <= 0.4


def test_residual_nets_with_batch_norm_by_gamma(keras, rng):
    L = keras.layers
    inputs = L.Input((8, 8, 3))
    x = L.ReLU()(L.BatchNormalization(name="n0")(L.Conv2D(8, 3, padding="same", name="c0")(inputs)))
    y = L.ReLU()(L.BatchNormalization(name="n1")(L.Conv2D(6, 3, padding="same", name="c1")(x)))
    y = L.BatchNormalization(name="n2")(L.Conv2D(8, 3, padding="same", name="c2")(y))
    x = L.GlobalAveragePooling2D()(L.ReLU()(L.Add()([x, y])))
    model = keras.Model(inputs, L.Dense(2, name="out")(x))
    model.compile("sgd", "mse")
    gammas = np.linspace(0.1, 1.0, 8)
    model.get_layer("n0").gamma.assign(gammas)
    model.get_layer("n2").gamma.assign(gammas)
    x, y = rng.normal(size=(16, 8, 8, 3)).astype(np.float32), rng.normal(size=(16, 2)).astype(np.float32)
    callback = xnn_tf.NeuronPruneCallback(0.5, criterion="bn_gamma", ranking="layer", schedule="constant")
    model.fit(x, y, batch_size=8, verbose=0, callbacks=[callback])
    assert dead(model) == {"c0 + c2": 4, "c1": 3}
    for name in ("n0", "n2"):
        assert (model.get_layer(name).gamma.numpy() == 0).tolist() == [True] * 4 + [False] * 4
        assert not model.get_layer(name).beta.numpy()[:4].any()
    small = xnn_tf.shrink(model)
    assert small.get_layer("c0").filters == small.get_layer("c2").filters == 4
    np.testing.assert_allclose(small(x), model(x), atol=1e-5)


def test_taylor_prunes_what_the_loss_does_not_need(mlp, data, keras):
    model = mlp(keras.optimizers.SGD(0.01))
    kernel = model.get_layer("b").kernel.numpy()
    kernel[:5] = 0  # the first five units of a are not read
    model.get_layer("b").kernel.assign(kernel)
    frozen = model.get_layer("b")
    frozen.trainable = False
    model.compile(keras.optimizers.SGD(0.01), "mse")
    callback = xnn_tf.NeuronPruneCallback(
        0.25, criterion="taylor", ranking="layer", include="a", begin=4, schedule="constant"
    )
    model.fit(*data, batch_size=8, verbose=0, callbacks=[callback])
    assert (~model.get_layer("a").kernel.numpy().any(axis=0)).tolist() == [True] * 5 + [False] * 15
    assert "apply" not in vars(model.optimizer) and "apply_gradients" not in vars(model.optimizer)
    model.fit(*data, verbose=0)


def test_an_error_leaves_nothing_behind(keras, rng):
    L = keras.layers
    model = keras.Sequential(
        [L.Input((None, None, 3)), L.Conv2D(4, 3, name="a"), L.GlobalAveragePooling2D(), L.Dense(2, name="out")]
    )
    model.compile("sgd", "mse")
    callback = xnn_tf.NeuronPruneCallback(0.5, of="macs", criterion="taylor")
    with pytest.raises(InputError, match=r'a has results of unknown size .* take of="weights"'):
        model.fit(rng.normal(size=(2, 5, 5, 3)), np.zeros((2, 2)), verbose=0, callbacks=[callback])
    assert "apply" not in vars(model.optimizer) and "apply_gradients" not in vars(model.optimizer)
    assert model.get_layer("a").kernel.constraint is None


def test_a_criterion_of_ones_own(mlp, data):
    model = mlp("sgd")
    callback = xnn_tf.NeuronPruneCallback(
        0.5, ranking="layer", schedule="constant", criterion=lambda group: -np.arange(len(group))
    )
    model.fit(*data, verbose=0, callbacks=[callback])
    assert (~model.get_layer("a").kernel.numpy().any(axis=0)).tolist() == [False] * 10 + [True] * 10
    with pytest.raises(InputError, match=r"a it must give 20 finite numbers"):
        model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.6, criterion=lambda group: 1.0)])


def test_neurons_and_synapses_in_one_fit(mlp, data):
    model = mlp()
    callbacks = [xnn_tf.NeuronPruneCallback(0.4), xnn_tf.PruneCallback(0.8)]
    history = model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=callbacks).history
    assert history["pruned_neurons"][-1] == 0.4
    units = sum(int(model.get_layer(name).kernel.numpy().any(axis=0).sum()) for name in ("a", "b"))
    assert units <= 18  # a neuron that loses its last weight is gone as well
    possible = []
    for a, b in ((20 - gone, 10 - (12 - gone)) for gone in range(2, 13)):  # neurons that the callback left
        left = zip((120, 200, 20), (6 * a, a * b, 2 * b), strict=True)
        possible.append([size - live + round(0.8 * live) for size, live in left])
    assert [row.zeros for row in xnn_tf.sparsity(model)] in possible
    small = xnn_tf.shrink(model)
    assert small.get_layer("a").units + small.get_layer("b").units <= 18
    np.testing.assert_allclose(small(data[0]), model(data[0]), atol=1e-5)
    small.fit(*data, verbose=0, callbacks=[xnn_tf.PruneCallback(None)])
    assert xnn_tf.sparsity(small).total.zeros > 0


@pytest.mark.parametrize(("neurons_first", "ends"), [(True, (0.25, 0.75)), (False, (0.25, 0.75)), (False, (0.75, 0.5))])
def test_the_target_of_synapses_is_that_of_what_is_left(keras, rng, neurons_first, ends):
    """Exactly, unless neurons go after all synapses have, with fewer zeros than those that stay."""
    L = keras.layers
    layers = [L.Input((30,)), L.Dense(40, "relu", name="a"), L.Dense(30, name="b"), L.Dense(2, name="out")]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    neurons = xnn_tf.NeuronPruneCallback(0.4, end=ends[0], frequency=1)
    synapses = xnn_tf.PruneCallback(0.6, exclude="out", end=ends[1], frequency=1)
    x = rng.normal(size=(64, 30)).astype(np.float32)
    callbacks = [neurons, synapses] if neurons_first else [synapses, neurons]
    model.fit(x, x[:, :2], batch_size=8, epochs=3, verbose=0, callbacks=callbacks)
    small = xnn_tf.shrink(model)
    assert small.get_layer("a").units + small.get_layer("b").units == 42
    for row in xnn_tf.sparsity(small).rows[:2]:
        least = round(0.6 * row.size)
        assert least <= row.zeros <= least + (0 if ends[0] < ends[1] else 0.01 * row.size), row


def test_a_custom_loop_with_any_update(mlp, data):
    model = mlp()
    prune = xnn_tf.NeuronPruneCallback(0.5, end=5, frequency=1)
    prune.start(model, total_steps=10)
    seen = []
    for _ in range(10):
        for variable in model.trainable_variables:
            variable.assign_add(0.01 * tf.ones(variable.shape))
        seen.append(prune.step())
        assert sum(dead(model).values()) == round(30 * seen[-1])
    prune.finish()
    assert seen == sorted(seen)
    assert seen[4:] == [0.5] * 6


def test_training_that_goes_on_keeps_what_is_pruned(mlp, data):
    model = mlp()
    model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5, schedule="constant")])
    gone = ~model.get_layer("a").kernel.numpy().any(axis=0)
    for callback in (xnn_tf.NeuronPruneCallback(None), xnn_tf.NeuronPruneCallback(0.5, begin=0.5)):
        model.fit(*data, epochs=2, verbose=0, callbacks=[callback])
        np.testing.assert_array_equal(~model.get_layer("a").kernel.numpy().any(axis=0), gone)


def test_what_cannot_be_pruned_is_said(keras, mlp, data):
    L = keras.layers
    model = keras.Sequential(
        [L.Input((6,)), L.Dense(8, name="a"), L.LayerNormalization(name="norm"), L.Dense(8, name="b"), L.Dense(2)]
    )
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match=r"1 layers keep all their neurons \(a: norm"):
        model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5)])
    with pytest.raises(InputError, match=r"a: norm .*several channels"):
        model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5, include="a")])
    with pytest.raises(InputError, match="no BatchNorm"):
        model.fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5, include="b", criterion="bn_gamma")])
    with pytest.raises(InputError, match="already pruned by another NeuronPruneCallback"):
        mlp().fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5), xnn_tf.NeuronPruneCallback(0.5)])
    with pytest.warns(UserWarning, match="step 100, the training at step 2"):
        mlp().fit(*data, verbose=0, callbacks=[xnn_tf.NeuronPruneCallback(0.5, end=100)])


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": 1.0},
        {"initial": 0.6},
        {"of": "bytes"},
        {"ranking": "local"},
        {"criterion": "l1"},
        {"per_layer": {"a": 2}},
    ],
    ids=str,
)
def test_useless_arguments_are_refused(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        xnn_tf.NeuronPruneCallback(**arguments)

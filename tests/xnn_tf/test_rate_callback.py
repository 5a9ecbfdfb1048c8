"""Pruning and quantization to a number of bytes, in one fit."""

import numpy as np
import pytest

import converter
from schema.errors import InputError
from xnn_tf.compression.coded_size import coded_bytes_of
from xnn_tf.lamp_ranking import LampRanking
from xnn_tf.rate_callback import RateCallback
from xnn_tf.rated_kernel import entropy_bits, fit_step


@pytest.fixture
def task(keras, rng):
    """A net that fits its data, and the data."""
    keras.utils.set_random_seed(3)
    x = rng.normal(0, 1, (512, 12, 12, 3)).astype(np.float32)
    y = (x.mean((1, 2))[:, :1] > 0).astype(np.float32)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((12, 12, 3)),
            layers.Conv2D(24, 3, use_bias=False, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(),
            layers.Conv2D(24, 3, name="middle", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(32, activation="relu", name="hidden"),
            layers.Dense(1, name="last"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), keras.losses.BinaryCrossentropy(from_logits=True))
    return model, x, y


def kernels(model):
    return {w.name: w.numpy() for w in model.trainable_weights if len(w.shape) > 1}


@pytest.mark.parametrize("levels", [1, 3])
def test_kernels_take_the_bytes_that_were_asked_for(task, levels):
    model, x, y = task
    callback = RateCallback(target_size=900, levels=levels)
    history = model.fit(x, y, epochs=10, batch_size=32, verbose=0, callbacks=[callback])
    values = [w.numpy() for w in model.trainable_weights if len(w.shape) > 1]
    for weight in values:
        magnitudes = np.unique(np.abs(weight[weight != 0]))
        whole = np.rint(magnitudes / magnitudes[0] * np.rint(magnitudes[0] / (magnitudes[-1] / levels)).clip(1))
        assert magnitudes.size <= levels
        np.testing.assert_allclose(magnitudes / magnitudes[0], whole / whole[0], rtol=1e-5)
    assert history.history["coded_bytes"][-1] == pytest.approx(900, rel=0.02)
    entropy = sum(entropy_bits(np.unique(w, return_counts=True)[1]) for w in values) / 8
    assert entropy == pytest.approx(
        900, rel=0.02
    )  # of the levels that weights have in the end, not when they came there
    assert history.history["coded_bytes"][0] > 1200
    coded = sum(map(coded_bytes_of, values))
    assert coded == pytest.approx(900 + 60 * len(values), rel=0.15)  # and what streams cost besides
    share = [(w == 0).mean() for w in values]
    assert max(share) - min(share) > 0.1  # not one sparsity for all
    assert history.history["loss"][-1] < 0.5  # it learns: by chance it is 0.69


def test_whole_files_of_the_bytes_that_were_asked_for(task):
    model, x, y = task
    sizes = []

    def size_of(given):
        assert given is model
        values = [np.unique(np.abs(w)).size for w in kernels(model).values()]
        assert max(values) <= 3  # 0 and two magnitudes, also while weights are still being pulled to them
        sizes.append(len(converter.convert(given).bytes))
        return sizes[-1]

    callback = RateCallback(target_size=1700, size_of=size_of)
    history = model.fit(x, y, epochs=10, batch_size=32, verbose=0, callbacks=[callback])
    assert len(converter.convert(model).bytes) == pytest.approx(1700, rel=0.01)
    assert history.history["coded_bytes"][-1] == pytest.approx(1700, rel=0.01)
    assert 3 <= len(sizes) <= 6 and sizes[0] > 1700
    assert history.history["loss"][-1] < 0.55  # it learns: by chance it is 0.69


def test_weights_are_as_before_where_size_of_fails(task):
    model, *_ = task

    def size_of(given):
        raise OSError("no room")

    callback = RateCallback(target_size=1700, size_of=size_of)
    before = kernels(model)
    callback.start(model, total_steps=10)
    for _ in range(2):
        callback.step()
    with pytest.raises(OSError, match="no room"):
        callback.step()
    callback.release()
    for name, weight in kernels(model).items():
        kept = weight != 0
        np.testing.assert_array_equal(weight[kept], before[name][kept])


def test_zeros_that_there_are_stay(task):
    model, x, y = task
    kernel = model.get_layer("middle").kernel
    zeros = np.random.default_rng(0).random(kernel.shape) < 0.3
    kernel.assign(np.where(zeros, 0, kernel.numpy()))
    model.fit(x, y, epochs=2, batch_size=32, verbose=0, callbacks=[RateCallback(target_ratio=12, levels=2)])
    assert (kernel.numpy()[zeros] == 0).all()


def test_layers_of_their_own_levels(task):
    model, x, y = task
    callback = RateCallback(target_ratio=10, levels=1, per_layer={"last": 0, "hidden": 7})
    model.fit(x, y, epochs=2, batch_size=32, verbose=0, callbacks=[callback])
    distinct = {name: np.unique(model.get_layer(name).kernel.numpy()).size for name in ("conv", "hidden", "last")}
    assert distinct["conv"] <= 3 < distinct["hidden"] <= 15
    assert distinct["last"] == 32


def test_custom_loop(task):
    import tensorflow as tf

    model, x, y = task
    callback = RateCallback(target_ratio=20)
    callback.start(model, total_steps=30)
    for _ in range(30):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y[:64], model(x[:64], training=True)))
        weights = model.trainable_weights
        model.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        size = callback.step()
    target = callback.target_bytes
    callback.finish()
    assert size == pytest.approx(target, rel=0.05)
    assert all(np.unique(np.abs(w)).size <= 3 for w in kernels(model).values())
    before = model.get_layer("middle").kernel.numpy()
    model.fit(x, y, epochs=1, batch_size=64, verbose=0)
    assert np.unique(model.get_layer("middle").kernel.numpy()).size > before.size / 2  # nothing holds it any more


def test_levels_that_weights_take_later_are_counted(keras, rng):
    """Once weights have levels, they move between them: to rarer ones, that cost more bytes."""
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, use_bias=False)])
    kernel = model.layers[0].kernel
    kernel.assign(rng.normal(size=(64, 64)))
    callback = RateCallback(target_size=700, levels=4)
    callback.start(model, total_steps=100)
    for step in range(100):
        if step == 85:
            levels = np.unique(kernel.numpy())
            kernel.assign(np.where(kernel.numpy() == 0, 0, rng.choice(levels[levels != 0], (64, 64))))
        callback.step()
    callback.finish()
    entropy = entropy_bits(np.unique(kernel.numpy(), return_counts=True)[1]) / 8
    assert entropy == pytest.approx(700, rel=0.02)


def test_training_that_ends_early_says_so(task):
    model, x, y = task
    with pytest.warns(UserWarning, match="before weights had the values of levels"):
        model.fit(x, y, epochs=1, verbose=0, callbacks=[RateCallback(target_ratio=10, quantize_end=1000)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either target_size or target_ratio"),
        ({"target_size": 10, "target_ratio": 2}, "either target_size or target_ratio"),
        ({"target_size": 0}, "target_size=0"),
        ({"target_ratio": 1}, "target_ratio=1"),
        ({"target_ratio": "12"}, "target_ratio='12'"),
        ({"target_ratio": 2, "size_of": len}, "give target_size, not target_ratio"),
        ({"target_ratio": 9, "levels": 0}, "levels=0"),
        ({"target_ratio": 9, "levels": 200}, "levels=200"),
        ({"target_ratio": 9, "per_layer": {"a": 1.5}}, "per_layer"),
        ({"target_ratio": 9, "quantize_begin": 0.9}, "end=0.8 lies before begin=0.9"),
    ],
)
def test_arguments_of_no_use(arguments, message):
    with pytest.raises(InputError, match=message):
        RateCallback(**arguments)


def test_the_grid_that_is_nearest(rng):
    exact = rng.integers(1, 4, 1000) * 0.37
    assert fit_step(exact, 3) == pytest.approx(0.37)
    normal = np.abs(rng.normal(0, 1, 20_000))
    steps = np.linspace(0.05, 3, 600)
    errors = [np.square(normal - np.clip(np.rint(normal / s), 1, 2) * s).sum() for s in steps]
    assert fit_step(normal, 2) == pytest.approx(steps[int(np.argmin(errors))], abs=0.01)
    assert fit_step(np.zeros(0), 2) == 0


def test_entropy():
    assert entropy_bits(np.array([8, 8])) == 16
    assert entropy_bits(np.array([5, 0])) == 0
    assert entropy_bits(np.array([2, 1, 1])) == pytest.approx(6)


def test_ranking_is_that_of_the_paper():
    ranking = LampRanking([np.array([1.0, 2.0, 2.0]), np.array([[10.0, 0.1]])])
    # 1/9, 4/8, 4/4 and 0.01/100.01, 1
    assert [ranking.counts(n) for n in range(6)] == [[0, 0], [0, 1], [1, 1], [2, 1], [3, 2], [3, 2]]

"""How many zeros there are at the end, and where."""

import copy
import sys
import warnings

import numpy as np
import pytest

import xnn_tf
from schema import InputError
from xnn_tf.kernel_layout import KernelLayout


@pytest.mark.parametrize(
    "arguments",
    [
        {"schedule": "cubic", "begin": 2, "end": 0.5, "frequency": 5, "initial_sparsity": 0.3},
        {"schedule": "cubic", "end": 1.0},
        {"schedule": "constant", "begin": 7, "frequency": 100},
    ],
    ids=str,
)
def test_exactly_round_target_n_zeros_per_kernel(dense_model, data, zeros, arguments):
    model = dense_model()
    callback = xnn_tf.PruneCallback(0.83, **arguments)
    model.fit(*data, batch_size=8, epochs=3, verbose=0, callbacks=[callback])
    assert zeros(model.get_layer("hidden")) == round(0.83 * 60) == 50
    assert zeros(model.get_layer("out")) == round(0.83 * 20) == 17
    assert xnn_tf.sparsity(model).total.zeros == 67


def test_tfmot_schedules(dense_model, data, zeros, monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")  # tfmot sets it; monkeypatch puts it back
    pytest.importorskip("tensorflow_model_optimization")
    sparsity = sys.modules["tensorflow_model_optimization"].sparsity.keras
    schedule = sparsity.PolynomialDecay(0.1, 0.8, begin_step=2, end_step=13, frequency=4)
    model = dense_model()
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(schedule=schedule)])
    assert [zeros(layer) for layer in model.layers] == [48, 16]
    prune = xnn_tf.PruneCallback(schedule=sparsity.ConstantSparsity(0.9, begin_step=1, frequency=3))
    prune.start(model)
    assert prune.step() == 0.9
    prune.finish()
    with pytest.raises(InputError, match="contradicts"):
        xnn_tf.PruneCallback(0.9, schedule=schedule)


def test_weights_of_equal_magnitude_are_pruned_in_order(dense_model, data):
    model = dense_model("sgd")
    model.optimizer.learning_rate = 0.0
    model.get_layer("hidden").kernel.assign(np.full((6, 10), -0.5, np.float32))
    model.fit(*data, verbose=0, callbacks=[xnn_tf.PruneCallback(0.35, schedule="constant")])
    kernel = model.get_layer("hidden").kernel.numpy()
    assert (kernel.ravel() == [0.0] * 21 + [-0.5] * 39).all()
    assert not np.signbit(kernel.ravel()[:21]).any()


def test_the_smallest_weights_are_pruned_and_the_others_train_on(dense_model, data):
    model = dense_model("sgd")
    before = model.get_layer("hidden").kernel.numpy()
    model.fit(*data, batch_size=64, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5, schedule="constant")])
    after = model.get_layer("hidden").kernel.numpy()
    np.testing.assert_array_equal(after == 0, np.abs(before) <= np.sort(np.abs(before), axis=None)[29])
    assert np.mean(after[after != 0] != before[after != 0]) > 0.5


@pytest.mark.parametrize("block", [(4, 4), (1, 4)])
def test_blocks(keras, rng, block):
    model = keras.Sequential(
        [
            keras.layers.Input((5, 5, 3)),
            keras.layers.Conv2D(6, 3, name="conv"),
            keras.layers.Flatten(),
            keras.layers.Dense(5, name="dense"),
        ]
    )
    model.compile("adam", "mse")
    x, y = rng.normal(size=(16, 5, 5, 3)).astype(np.float32), rng.normal(size=(16, 5)).astype(np.float32)
    model.fit(x, y, epochs=2, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(0.6, pattern=block)])
    for layer in (model.get_layer("conv"), model.get_layer("dense")):
        view = KernelLayout.last_is_output(tuple(layer.kernel.shape)).to_view(layer.kernel.numpy())
        blocks = [
            view[position, out : out + block[0], source : source + block[1]].any()
            for position in range(view.shape[0])
            for out in range(0, view.shape[1], block[0])
            for source in range(0, view.shape[2], block[1])
        ]
        assert blocks.count(False) == round(0.6 * len(blocks))


def test_two_of_four(keras, rng):
    model = keras.Sequential(
        [
            keras.layers.Input((5, 5, 8)),
            keras.layers.Conv2D(6, 3, name="conv"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5, name="tail"),  # six inputs: one group of four and a tail of two
        ]
    )
    model.compile("adam", "mse")
    x, y = rng.normal(size=(32, 5, 5, 8)).astype(np.float32), rng.normal(size=(32, 5)).astype(np.float32)
    model.fit(x, y, epochs=4, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(pattern="2:4")])
    conv = model.get_layer("conv").kernel.numpy()
    assert (np.sum(conv.reshape(3, 3, 2, 4, 6) == 0, axis=3) == 2).all()
    tail = model.get_layer("tail").kernel.numpy()
    assert (np.sum(tail[:4] == 0, axis=0) == 2).all()
    assert tail[4:].all()
    with pytest.raises(InputError, match=r"target is 0\.5"):
        xnn_tf.PruneCallback(0.8, pattern="2:4")


class TestSelection:
    @pytest.fixture
    def model(self, keras):
        def block(name):
            return keras.Sequential(
                [keras.layers.DepthwiseConv2D(3, name="dw"), keras.layers.Conv2D(4, 1, name="pw")], name=name
            )

        inputs = keras.layers.Input((9, 9, 2))
        x = keras.layers.Conv2D(4, 3, name="stem")(inputs)
        x = keras.layers.SeparableConv2D(4, 3, name="sep")(block("block_2")(block("block_1")(x)))
        x = keras.layers.Reshape((1, 4))(keras.layers.GlobalAveragePooling2D()(x))
        x = keras.layers.Bidirectional(keras.layers.GRU(4, name="gru"), name="both")(x)
        model = keras.Model(inputs, keras.layers.Dense(3, name="head")(x))
        model.compile("sgd", "mse")
        return model

    @staticmethod
    def sparsities(model, target=0.5, **arguments):
        callback = xnn_tf.PruneCallback(target, schedule="constant", **arguments)
        callback.start(model)
        callback.finish()
        rows = xnn_tf.sparsity(model).rows
        return {f"{row.layer}/{row.weight}": round(row.sparsity, 2) for row in rows if row.zeros}

    def test_by_default_every_conv_and_dense_kernel_the_first_included(self, model):
        assert list(self.sparsities(model)) == [
            "stem/kernel",
            "block_1/pw/kernel",
            "block_2/pw/kernel",
            "sep/pointwise_kernel",
            "head/kernel",
        ]

    def test_include_by_name_path_container_and_weight(self, model):
        depthwise = "depthwise_kernel" if "tf_keras" in type(model).__module__ else "kernel"
        assert list(self.sparsities(model, include=["h*d", "block_1/dw", "block_2", "sep/depthwise_kernel"])) == [
            f"block_1/dw/{depthwise}",
            "block_2/pw/kernel",
            "sep/depthwise_kernel",
            "head/kernel",
        ]

    def test_recurrent_kernels_when_asked_for_by_the_wrapper_or_the_layer(self, model):
        assert len(self.sparsities(model, include="both")) == 4
        assert len(self.sparsities(model, include="*_gru/gru_cell/kernel")) == 4  # the two others were pruned above

    def test_exclude_wins(self, model):
        assert list(self.sparsities(model, include=["stem", "block_*"], exclude=["*/dw", "block_2"])) == [
            "stem/kernel",
            "block_1/pw/kernel",
        ]

    def test_per_layer_targets_and_what_they_ask_for(self, model):
        found = self.sparsities(model, per_layer={"stem": 0.0, "head": 0.75, "*/pw": 0.25, "block_1/dw": 0.5})
        depthwise = "depthwise_kernel" if "tf_keras" in type(model).__module__ else "kernel"
        assert found == {
            f"block_1/dw/{depthwise}": 0.5,
            "block_1/pw/kernel": 0.25,
            "block_2/pw/kernel": 0.25,
            "sep/pointwise_kernel": 0.5,
            "head/kernel": 0.75,
        }

    @pytest.mark.parametrize("argument", ["include", "exclude", "per_layer"])
    def test_a_pattern_without_a_layer_is_refused_with_names_that_come_near(self, model, argument):
        value = {"blok_1/pw": 0.5} if argument == "per_layer" else ["stem", "blok_1/pw"]
        with pytest.raises(InputError, match=rf"{argument}: .*'blok_1/pw'.*block_1/pw"):
            self.sparsities(model, **{argument: value})

    def test_frozen_kernels_are_pruned_only_when_asked_for(self, model):
        model.get_layer("stem").trainable = False
        model.compile("sgd", "mse")
        with pytest.warns(UserWarning, match="stem/kernel"):
            assert "stem/kernel" not in self.sparsities(model)
        assert list(self.sparsities(model, include="stem"))[:1] == ["stem/kernel"]

    def test_two_of_four_refuses_depthwise_kernels(self, model):
        with pytest.raises(InputError, match=r"block_1/dw/.*one"):
            self.sparsities(model, pattern="2:4", per_layer={"block_1/dw": 0.5})
        assert not self.sparsities(model, target=None)  # nothing stayed behind


def test_transposed_and_one_dimensional_convolutions_and_embeddings_and_einsum(keras, rng):
    inputs = keras.layers.Input((6,))
    x = keras.layers.Embedding(11, 8, name="embedding")(inputs)
    x = keras.layers.Conv1D(8, 3, name="conv")(x)
    x = keras.layers.Conv1DTranspose(4, 3, name="transposed")(x)
    x = keras.layers.EinsumDense("abc,cd->abd", (None, 8), name="einsum")(x)
    model = keras.Model(inputs, x)
    model.compile("adam", "mse")
    x, y = rng.integers(0, 11, (16, 6)), rng.normal(size=(16, 6, 8)).astype(np.float32)
    model.fit(x, y, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.75, pattern=(2, 4))])
    table = xnn_tf.sparsity(model)
    assert {row.layer: row.sparsity for row in table} == {
        "embedding": 0,
        "conv": 0.75,
        "transposed": 0.75,
        "einsum": 0.75,
    }
    transposed = model.get_layer("transposed").kernel.numpy()  # (taps, outputs, inputs)
    blocks = transposed.reshape(3, 2, 2, 2, 4)
    assert (blocks.any(axis=(2, 4)) == blocks.all(axis=(2, 4))).all()


def test_subclassed_model_with_layers_in_lists_and_shared(keras, data, zeros):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [keras.layers.Dense(6, "relu", name=f"block_{i}") for i in range(2)]
            self.inner = {"head": keras.layers.TimeDistributed(keras.layers.Dense(2, name="shared"), name="over_time")}
            self.unused = keras.layers.Dense(3, name="unused")

        def call(self, x):
            for block in self.blocks:
                x = block(block(x))
            return self.inner["head"](x[:, None])[:, 0]

    model = Net()
    model.compile("adam", "mse")
    model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8)])
    assert [(row.layer, row.zeros) for row in xnn_tf.sparsity(model)] == [
        ("block_0", 29),
        ("block_1", 29),
        ("over_time/shared", 10),
    ]


def test_a_subclassed_model_whose_whole_training_is_one_execution(keras, data, zeros):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Net()
    model.compile("adam", "mse", steps_per_execution=8)
    model.fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5, include="dense*")])
    assert zeros(model.dense) == 6


def test_training_that_stops_early_keeps_what_it_has_and_warns(dense_model, data, keras):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                self.model.stop_training = True

    model = dense_model()
    callback = xnn_tf.PruneCallback(0.8, begin=0, end=8, frequency=1)
    with pytest.warns(UserWarning, match="ended at step 4"):
        model.fit(*data, batch_size=8, epochs=2, verbose=0, callbacks=[callback, Stop()])
    share = 0.8 * (1 - (1 - 4 / 8) ** 3)
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [round(share * 60), round(share * 20)]


def test_an_end_after_the_training_is_announced_at_its_start(dense_model, data):
    with pytest.warns(UserWarning, match="step 100, the training at step 8"):
        dense_model().fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8, end=100)])


def test_fine_tuning_keeps_zeros_with_target_none_or_the_same_target_and_fills_them_without(dense_model, data):
    model = dense_model("sgd")
    model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.8)])
    pruned = [layer.kernel.numpy() == 0 for layer in model.layers]
    for callback in (xnn_tf.PruneCallback(None), xnn_tf.PruneCallback(0.8, begin=0.5)):
        model.fit(*data, epochs=2, verbose=0, callbacks=[callback])
        for layer, mask in zip(model.layers, pruned, strict=True):
            np.testing.assert_array_equal(layer.kernel.numpy() == 0, mask)
    model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.9)])
    for layer, mask in zip(model.layers, pruned, strict=True):
        assert (layer.kernel.numpy()[mask] == 0).all()
    model.fit(*data, epochs=1, verbose=0)
    assert xnn_tf.sparsity(model).total.sparsity < 0.5


def test_kernels_initialised_with_zeros_are_not_taken_for_pruned(keras, data, zeros):
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2, kernel_initializer="zeros", name="out")])
    model.compile("sgd", "mse")
    model.fit(*data, batch_size=8, verbose=0, callbacks=[xnn_tf.PruneCallback(None)])
    assert zeros(model.get_layer("out")) == 0


def test_constraints_of_the_layer_stay(keras, data):
    model = keras.Sequential(
        [keras.layers.Input((6,)), keras.layers.Dense(2, kernel_constraint=keras.constraints.NonNeg(), name="out")]
    )
    model.compile("sgd", "mse")
    model.fit(*data, verbose=0, callbacks=[xnn_tf.PruneCallback(0.25)])
    kernel = model.get_layer("out").kernel
    assert (kernel.numpy() >= 0).all()
    assert type(kernel.constraint).__name__ == "NonNeg"


def test_two_callbacks_share_a_model_but_no_kernel(dense_model, data):
    model = dense_model()
    blocks = xnn_tf.PruneCallback(0.5, include="hidden", pattern=(2, 2))
    elements = xnn_tf.PruneCallback(0.75, include="out")
    history = model.fit(*data, epochs=2, verbose=0, callbacks=[blocks, elements]).history
    assert [row.zeros for row in xnn_tf.sparsity(model)] == [4 * round(0.5 * 15), 15]
    assert history["sparsity"][-1] == 47 / 80
    with pytest.raises(InputError, match="out/kernel is already pruned"):
        model.fit(*data, verbose=0, callbacks=[elements, xnn_tf.PruneCallback(0.5)])


def test_a_callback_serves_many_models_and_copies(dense_model, data):
    callback = xnn_tf.PruneCallback(0.5)
    for _ in range(2):
        model = dense_model()
        model.fit(*data, verbose=0, callbacks=[callback])
        copy.deepcopy(xnn_tf.PruneCallback(0.5))
        assert xnn_tf.sparsity(model).total.zeros == 40


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"target_sparsity": 1.0}, "target_sparsity=1.0"),
        ({"target_sparsity": -0.1}, "target_sparsity"),
        ({"target_sparsity": "0.5"}, "target_sparsity='0.5'"),
        ({"target_sparsity": True}, "target_sparsity"),
        ({"initial_sparsity": 0.6}, "initial_sparsity=0.6"),
        ({"per_layer": {"a": 1.5}}, r"per_layer\['a'\]=1.5"),
        ({"per_layer": {3: 0.5}}, "per_layer"),
        ({"include": [3]}, "include"),
        ({"exclude": 3}, "exclude"),
        ({"per_layer": ["a"]}, "per_layer"),
    ],
    ids=str,
)
def test_useless_arguments_are_refused(arguments, names):
    with pytest.raises(InputError, match=names):
        xnn_tf.PruneCallback(**arguments)


def test_a_model_without_conv_and_dense_is_refused(keras):
    model = keras.Sequential([keras.layers.Input((4, 2)), keras.layers.LSTM(2)])
    model.compile("sgd", "mse")
    with pytest.raises(InputError, match="include="):
        model.fit(np.ones((2, 4, 2)), np.ones((2, 2)), verbose=0, callbacks=[xnn_tf.PruneCallback()])


def test_no_warnings_in_ordinary_use(dense_model, data):
    model = dense_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*data, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.5)], validation_data=data)

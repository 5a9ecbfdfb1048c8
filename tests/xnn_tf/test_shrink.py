"""The smaller model computes the same: layer by layer, and whole nets."""

import numpy as np
import pytest

from schema import InputError
from tests.support.dead_neurons import calibrate, kill, load_zoo, randomize
from xnn_tf import shrink
from xnn_tf.channels import channel_groups


def images(rng, *shape):
    return rng.normal(size=(5, *shape)).astype(np.float32)


def outputs(model, x):
    got = model(x, training=False)
    return [np.asarray(g) for g in (got if isinstance(got, (list, tuple)) else [got])]


def check(model, x, small=None):
    """Returns the smaller model, having shown that it computes the same and that inputs matter."""
    before = outputs(model, x)
    small = shrink(model) if small is None else small
    after = outputs(small, x)
    for a, b in zip(before, after, strict=True):
        assert np.abs(a[0] - a[1]).max() > 1e-3
        np.testing.assert_allclose(b, a, atol=1e-5 * max(1, np.abs(a).max()))
    return small


def plain(L, x):
    return L.Conv2D(6, 3, activation="tanh", name="second")(x)


def bare(L, x):
    return L.Conv2D(6, 1, use_bias=False, name="second")(x)


BETWEEN = {
    "nothing": lambda L, x: plain(L, x),
    "same padding": lambda L, x: L.Conv2D(6, 3, padding="same", name="second")(x),
    "strides and dilation": lambda L, x: L.Conv2D(4, 3, dilation_rate=2, name="second")(x),
    "BatchNorm": lambda L, x: plain(L, L.ReLU()(L.BatchNormalization()(x))),
    "BatchNorm without gamma": lambda L, x: plain(L, L.BatchNormalization(scale=False)(x)),
    "BatchNorm without beta": lambda L, x: plain(L, L.BatchNormalization(center=False)(x)),
    "sigmoid": lambda L, x: plain(L, L.Activation("sigmoid")(x)),
    "sigmoid without a bias behind": lambda L, x: bare(L, L.Activation("sigmoid")(x)),
    "PReLU": lambda L, x: plain(L, L.PReLU()(x)),
    "PReLU shared": lambda L, x: plain(L, L.PReLU(shared_axes=[1, 2])(x)),
    "LeakyReLU, Dropout, noise": lambda L, x: plain(L, L.GaussianNoise(0.1)(L.Dropout(0.5)(L.LeakyReLU()(x)))),
    "max pooling": lambda L, x: plain(L, L.MaxPooling2D(2)(x)),
    "average pooling": lambda L, x: plain(L, L.AveragePooling2D(3, 2, padding="same")(x)),
    "zero padding, cropping": lambda L, x: plain(L, L.Cropping2D(1)(L.ZeroPadding2D(2)(x))),
    "upsampling": lambda L, x: plain(L, L.UpSampling2D(2, interpolation="bilinear")(x)),
    "depthwise": lambda L, x: plain(L, L.ReLU()(L.DepthwiseConv2D(3, padding="same", name="dw")(x))),
    "depthwise multiplier": lambda L, x: plain(L, L.DepthwiseConv2D(3, depth_multiplier=3, name="dw")(x)),
    "separable": lambda L, x: L.SeparableConv2D(6, 3, name="second")(x),
    "separable multiplier": lambda L, x: L.SeparableConv2D(6, 3, depth_multiplier=2, padding="same", name="second")(x),
    "transposed": lambda L, x: L.Conv2DTranspose(6, 3, strides=2, name="second")(x),
    "grouped": lambda L, x: plain(L, L.Conv2D(8, 3, groups=4, name="grouped")(x)),
    "grouped one by one": lambda L, x: plain(L, L.Conv2D(16, 3, groups=8, name="grouped")(x)),
    "concatenation": lambda L, x: plain(L, L.Concatenate()([L.Conv2D(4, 3, padding="same", name="b")(x), x])),
    "concatenation of places": lambda L, x: plain(L, L.Concatenate(axis=1)([x, L.ReLU()(x)])),
    "addition": lambda L, x: plain(L, L.ReLU()(L.Add()([L.Conv2D(8, 3, padding="same", name="b")(x), x]))),
    "the other merges": lambda L, x: plain(
        L, L.Maximum()([L.Average()([L.Subtract()([L.Conv2D(8, 1, name="b")(x), x]), x]), x])
    ),
    "squeeze and excitation": lambda L, x: plain(
        L,
        L.Multiply()(
            [
                x,
                L.Dense(8, "sigmoid", name="e")(
                    L.Dense(4, "relu", name="s")(L.GlobalAveragePooling2D(keepdims=True)(x))
                ),
            ]
        ),
    ),
    "dense over places": lambda L, x: L.Dense(5, name="second")(x),
    "global average": lambda L, x: L.Dense(5, name="second")(L.GlobalAveragePooling2D()(x)),
    "global maximum": lambda L, x: L.Dense(5, name="second")(L.GlobalMaxPooling2D()(x)),
    "flatten": lambda L, x: L.Dense(5, name="second")(L.Flatten()(L.Activation("sigmoid")(x))),
    "reshape to steps": lambda L, x: L.Conv1D(5, 3, name="second")(L.Reshape((-1, 8))(x)),
    "reshape to a vector": lambda L, x: L.Dense(5, name="second")(L.Reshape((8 * 81,))(x)),
    "channel shuffle": lambda L, x: plain(L, L.Reshape((9, 9, 8))(L.Permute((1, 2, 4, 3))(L.Reshape((9, 9, 2, 4))(x)))),
    "permute": lambda L, x: plain(L, L.Permute((2, 1, 3))(x)),
    "dense to image": lambda L, x: plain(
        L, L.Reshape((4, 4, 8))(L.Dense(128, "relu", name="d")(L.GlobalAveragePooling2D()(x)))
    ),
    "instance normalisation": lambda L, x: plain(L, L.GroupNormalization(groups=-1)(x)),
    "repeat": lambda L, x: L.Conv1D(5, 3, name="second")(L.RepeatVector(4)(L.GlobalAveragePooling2D()(x))),
    "time distributed": lambda L, x: L.TimeDistributed(L.Dense(5, name="inner"), name="second")(
        L.TimeDistributed(L.Conv1D(7, 3, activation="sigmoid", name="conv"), name="first")(x)
    ),
    "recurrent": lambda L, x: L.Dense(5, name="second")(
        L.GRU(6, name="gru")(L.LSTM(8, return_sequences=True, name="lstm")(L.Reshape((-1, 8))(x)))
    ),
    "simple recurrent": lambda L, x: L.Dense(5, name="second")(
        L.SimpleRNN(8, use_bias=False, name="rnn")(L.Reshape((-1, 8))(x))
    ),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_channels_pass_each_layer(keras, rng, between):
    L = keras.layers
    inputs = L.Input((9, 9, 3))
    x = BETWEEN[between](L, L.Conv2D(8, 3, padding="same", name="first_conv")(inputs))
    model = keras.Model(inputs, L.Conv2D(2, 1, name="last")(x) if len(x.shape) == 4 else L.Dense(2, name="last")(x))
    randomize(model, rng)
    before = channel_groups(model)
    dead = kill(model, rng, ways=("columns", "rows"))
    assert len(dead) >= 2 * len(before.removable) - 1
    small = check(model, images(rng, 9, 9, 3))
    assert [layer.name for layer in small.layers] == [layer.name for layer in model.layers]
    known = {id(weight.variable): weight for weight in before.weights}
    for old, new in zip(model.layers, small.layers, strict=True):
        for variable, left in zip(old.weights, new.weights[: len(old.weights)], strict=True):
            shape = list(variable.shape)
            for axis, ids in known[id(variable)].axes.items() if id(variable) in known else ():
                shape[axis] -= sum(unit in dead for unit in before.unit_of[ids].tolist())
            assert list(left.shape) == shape, variable.name


@pytest.mark.parametrize("name", ["lenet_5", "squeezenet_cifar", "resnet20"])
def test_whole_nets(keras, rng, shared, name):
    model = load_zoo(shared, name, keras)
    x = images(rng, *model.input_shape[1:])
    randomize(model, rng)
    kill(model, rng)
    calibrate(model, x)
    small = check(model, x)
    assert small.count_params() < 0.4 * model.count_params()
    assert [layer.name for layer in small.layers] == [layer.name for layer in model.layers]


def nested(keras):
    L = keras.layers
    block = keras.Sequential([L.Input((9, 9, 8)), L.Conv2D(8, 3, padding="same", name="conv"), L.ReLU()], name="block")
    inner = L.Input((9, 9, 8))
    deeper = keras.Model(inner, L.Add(name="add")([block(inner), inner]), name="deeper")
    inputs = L.Input((9, 9, 3), name="picture")
    x = L.Conv2D(8, 3, padding="same", name="conv")(inputs)
    x = block(deeper(x))  # the block twice
    return keras.Model(inputs, L.Dense(2, name="head")(L.Flatten(name="flat")(x)), name="net")


def test_nested_and_shared_models_train_on(keras, rng):
    model = nested(keras)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse", metrics=["mae"])
    kill(model, rng)
    x = images(rng, 9, 9, 3)
    small = check(model, x)
    assert [layer.name for layer in small.layers] == [layer.name for layer in model.layers]
    assert small.get_layer("conv").filters == 4
    assert small.get_layer("deeper").get_layer("block").get_layer("conv").filters == 4
    assert type(small.get_layer("block")) is type(model.get_layer("block"))
    assert type(small.optimizer) is type(model.optimizer)
    assert small.optimizer is not model.optimizer
    target = outputs(model, x)[0] + 1
    history = small.fit(x, target, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert "mae" in history or "mean_absolute_error" in history
    np.testing.assert_array_equal(outputs(model, x)[0] + 1, target)  # the old model is as it was


def test_sequential_models_stay_sequential(keras, rng):
    L = keras.layers
    model = keras.Sequential([L.Input((6,)), L.Dense(10, "sigmoid", name="hidden"), L.Dense(2, name="out")], name="net")
    kill(model, rng)
    small = check(model, images(rng, 6))
    assert isinstance(small, keras.Sequential)
    assert small.name == "net"
    assert small.get_layer("hidden").units == 5


def test_subclassed_models_and_blocks_are_followed(keras, rng):
    L = keras.layers

    class Block(L.Layer):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.convs = [L.Conv2D(8, 3, padding="same", name=f"conv_{i}") for i in range(2)]
            self.norm = L.BatchNormalization(name="norm")

        def call(self, x, training=None):
            return x + self.norm(self.convs[1](L.ReLU()(self.convs[0](x))), training=training)

    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.stem = L.Conv2D(8, 3, name="stem")
            self.block = Block(name="block")
            self.pool = L.GlobalAveragePooling2D()
            self.head = L.Dense(2, name="head")

        def call(self, x):
            return self.head(self.pool(self.block(self.stem(x))))

    model, x = Net(), images(rng, 9, 9, 3)
    model(x)
    randomize(model, rng)
    assert [group.name for group in channel_groups(model).removable] == ["stem + block/conv_1", "block/conv_0"]
    kill(model, rng)
    small = check(model, x)
    assert small.get_layer("stem").filters == small.get_layer("block").get_layer("conv_0").filters == 4
    small.compile("sgd", "mse")
    small.fit(x, np.zeros((5, 2)), verbose=0)


def test_what_cannot_be_followed_is_named(keras):
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own_net")
            self.dense = keras.layers.Dense(3)

        def call(self, x):
            return self.dense(x) if float(np.asarray(x).sum()) > 0 else self.dense(-x)

    with pytest.raises(InputError, match=r"own_net .*not built"):
        shrink(Own())
    model = Own()
    model(np.ones((2, 4), np.float32))
    with pytest.raises(InputError, match=r"own_net .*cannot be followed"):
        shrink(model)
    with pytest.raises(InputError, match="no Keras model"):
        shrink(object())


def test_constants_that_padding_cuts_are_kept(keras, rng):
    """A sigmoid's 0.5 is another sum at the border of a padded convolution, so that its channel must stay."""
    L = keras.layers
    inputs = L.Input((9, 9, 3))
    x = L.Conv2D(8, 3, activation="sigmoid", name="first")(inputs)
    model = keras.Model(inputs, L.Conv2D(2, 3, padding="same", name="second")(x))
    kill(model, rng)
    assert check(model, images(rng, 9, 9, 3)).get_layer("first").filters == 8
    kill(model, rng, ways=("rows",))
    assert check(model, images(rng, 9, 9, 3)).get_layer("first").filters == 4


def test_a_layer_keeps_one_of_its_channels(keras, rng):
    L = keras.layers
    model = keras.Sequential([L.Input((6,)), L.Dense(4, name="a"), L.Dense(2, name="b")])
    model.get_layer("a").set_weights([np.zeros((6, 4)), np.zeros(4)])
    assert shrink(model).get_layer("a").units == 1


def test_other_dimensions_embeddings_and_several_inputs(keras, rng):
    L = keras.layers
    words, volume = L.Input((9,), name="words"), L.Input((4, 4, 4, 2), name="volume")
    x = L.Embedding(11, 8, name="embedding")(words)
    x = L.ZeroPadding1D(1)(L.Conv1D(6, 3, activation="tanh", name="conv_1d")(x))
    x = L.GlobalMaxPooling1D()(L.SeparableConv1D(5, 3, name="separable")(x))
    y = L.MaxPooling3D(2, padding="same")(L.BatchNormalization()(L.Conv3D(6, 2, name="conv_3d")(volume)))
    y = L.GlobalAveragePooling3D()(L.Conv3DTranspose(4, 2, activation="tanh", name="transposed")(y))
    model = keras.Model([words, volume], L.Dense(2, name="out")(L.Concatenate()([x, y])))
    randomize(model, rng)
    kill(model, rng)
    small = check(model, [rng.integers(0, 11, (5, 9)), images(rng, 4, 4, 4, 2)])
    assert small.get_layer("embedding").output_dim == 4
    filters = [small.get_layer(name).filters for name in ("conv_1d", "separable", "conv_3d", "transposed")]
    assert filters == [3, 3, 3, 2]
    assert [tensor.name.partition(":")[0] for tensor in small.inputs] == ["words", "volume"]

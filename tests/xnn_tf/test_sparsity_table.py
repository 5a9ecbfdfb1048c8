import json

import numpy as np
import pytest

import xnn_tf
from schema import InputError


@pytest.fixture
def model(keras):
    model = keras.Sequential(
        [
            keras.layers.Input((6, 6, 1)),
            keras.Sequential([keras.layers.Conv2D(2, 3, name="conv")], name="stem"),
            keras.layers.Flatten(),
            keras.layers.Dense(5, name="dense"),
        ]
    )
    kernel = np.ones((32, 5), np.float32)
    kernel[:8] = 0
    model.get_layer("dense").kernel.assign(kernel)
    return model


def test_rows_total_and_lookup(model):
    table = xnn_tf.sparsity(model)
    assert [(row.layer, row.weight, row.shape, row.zeros, row.size) for row in table] == [
        ("stem/conv", "kernel", (3, 3, 1, 2), 0, 18),
        ("dense", "kernel", (32, 5), 40, 160),
    ]
    assert len(table) == 2
    assert (table.total.zeros, table.total.size, table.total.sparsity) == (40, 178, 40 / 178)
    assert table["dense"].sparsity == table["dense/kernel"].sparsity == 0.25
    with pytest.raises(KeyError):
        table["other"]


def test_it_prints_as_a_table(model):
    lines = str(xnn_tf.sparsity(model)).splitlines()
    assert lines == [
        "layer      weight  shape    zeros  size  sparsity",
        "─" * 49,
        "stem/conv  kernel  3×3×1×2      0    18    0.00 %",
        "dense      kernel  32×5        40   160   25.00 %",
        "─" * 49,
        "total                          40   178   22.47 %",
    ]
    assert repr(xnn_tf.sparsity(model)) == "\n".join(lines)


def test_it_becomes_json(model):
    table = json.loads(json.dumps(xnn_tf.sparsity(model).to_dict()))
    assert table["rows"][1] == {
        "layer": "dense",
        "weight": "kernel",
        "shape": [32, 5],
        "zeros": 40,
        "size": 160,
        "sparsity": 0.25,
    }
    assert table["total"] == {"zeros": 40, "size": 178, "sparsity": 40 / 178}


def test_patterns(model):
    assert [row.layer for row in xnn_tf.sparsity(model, include="stem")] == ["stem/conv"]
    assert [row.layer for row in xnn_tf.sparsity(model, exclude="conv")] == ["dense"]
    with pytest.raises(InputError, match=r"'dens'.*dense"):
        xnn_tf.sparsity(model, include="dens")


def test_every_kind_of_kernel_and_no_bias(keras):
    inputs = keras.layers.Input((4,))
    x = keras.layers.Embedding(10, 8, name="embedding")(inputs)
    x = keras.layers.MultiHeadAttention(2, 4, name="attention")(x, x)
    x = keras.layers.SeparableConv1D(4, 2, name="separable")(x)
    x = keras.layers.DepthwiseConv1D(2, name="depthwise")(x)
    x = keras.layers.LayerNormalization(axis=[1, 2])(keras.layers.PReLU()(x))
    model = keras.Model(inputs, keras.layers.GRU(3, name="gru")(x))
    counts = {}
    for row in xnn_tf.sparsity(model):
        layer = row.layer.partition("/")[0]
        counts[layer] = counts.get(layer, 0) + 1
    assert counts == {"embedding": 1, "attention": 4, "separable": 2, "depthwise": 1, "gru": 2}


def test_layers_of_ones_own(keras, data):
    class Bilinear(keras.layers.Layer):
        def build(self, input_shape):
            self.mixing = self.add_weight(shape=(6, 6, 3), name="mixing", initializer="ones")
            self.bias = self.add_weight(shape=(2, 3), name="bias", initializer="zeros")

        def call(self, x):
            return x[:, :3] * self.mixing[0, 0] + self.bias[0]

    model = keras.Sequential([keras.layers.Input((6,)), Bilinear(name="bilinear")])
    assert [(row.layer, row.weight, row.zeros) for row in xnn_tf.sparsity(model)] == [("bilinear", "mixing", 0)]
    prune = xnn_tf.PruneCallback(0.5, include="bilinear", schedule="constant")
    prune.start(model)
    prune.finish()
    assert xnn_tf.sparsity(model).total.zeros == 54


def test_models_without_weights_yet_and_other_things_are_refused(keras):
    class Net(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(InputError, match="build it"):
        xnn_tf.sparsity(Net())
    with pytest.raises(InputError, match="Keras model"):
        xnn_tf.sparsity([1, 2])

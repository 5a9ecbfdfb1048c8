"""What users say of other tools for pruning, each by a test: it must not be so here.

Those about quantization-aware training are in quantization/test_public_complaints.py.
"""

import numpy as np
import pytest

import converter
import xnn_tf


@pytest.fixture
def net(keras):
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((16, 16, 3)),
            layers.Conv2D(32, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(),
            layers.Conv2D(48, 3, strides=2, activation="relu", name="deeper"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(64, "relu", name="wide"),
            layers.Dense(5, name="out"),
        ]
    )
    model.compile("adam", "mse")
    return model


@pytest.fixture
def data(rng):
    x = rng.normal(size=(48, 16, 16, 3)).astype(np.float32)
    return x, np.tile(x.mean((1, 2)), (1, 2))[:, :5]


def test_a_pruned_file_is_smaller_than_the_dense_one(net, data):
    """In every form of file, as it comes from `convert`: no `strip_pruning`, no zip."""
    forms = ("none", "float16", "int8-weights", "int8")
    dense = {form: len(converter.convert(net, form, data[0] if form == "int8" else None).bytes) for form in forms}
    net.fit(*data, batch_size=16, epochs=2, verbose=0, callbacks=[xnn_tf.PruneCallback(0.9)])
    for form in forms:
        pruned = len(converter.convert(net, form, data[0] if form == "int8" else None).bytes)
        assert pruned < 0.3 * dense[form], form


@pytest.mark.parametrize("way", ["per_layer", "sensitivity"])
def test_no_sparsity_is_forced_on_all_layers(net, data, way):
    """By layer as the user says, or as far as each one's sensitivity allows."""
    if way == "per_layer":
        callback = xnn_tf.PruneCallback(0.8, per_layer={"conv": 0.25, "out": 0.0})
    else:
        callback = xnn_tf.PruneCallback(0.8, sensitivity="auto")
    net.fit(*data, batch_size=16, epochs=2, verbose=0, callbacks=[callback])
    found = {row.layer: row.sparsity for row in xnn_tf.sparsity(net)}
    if way == "per_layer":
        assert found == pytest.approx({"conv": 0.25, "deeper": 0.8, "wide": 0.8, "out": 0.0}, abs=1e-3)
    else:
        assert max(found.values()) - min(found.values()) > 0.1
        assert xnn_tf.sparsity(net).total.sparsity == pytest.approx(0.8, abs=0.01)

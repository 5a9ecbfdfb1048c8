"""Clusters from `fit` to the written file."""

from __future__ import annotations

import numpy as np
import pytest

import runtime
import schema
import xnn_tf
from converter import convert
from converter.preservation import kernels


def trained(keras, rng, clusters):
    """A small network after a few steps with so many values in each kernel, and what it learned from."""
    L = keras.layers
    model = keras.Sequential(
        [
            L.Input((8, 8, 3)),
            L.Conv2D(16, 3, padding="same", use_bias=False, name="first"),
            L.BatchNormalization(name="norm"),
            L.ReLU(),
            L.Conv2D(24, 3, strides=2, activation="relu", name="second"),
            L.Flatten(),
            L.Dense(12, name="last"),
        ]
    )
    x = rng.normal(size=(64, 8, 8, 3)).astype(np.float32)
    y = rng.normal(size=(64, 12)).astype(np.float32)
    model.compile("adam", "mse")
    model.fit(x, y, epochs=2, batch_size=16, verbose=0, callbacks=[xnn_tf.ClusterCallback(clusters)])
    return model, x


@pytest.mark.parametrize(
    ("clusters", "methods"), [(16, ["none", "float16", "int8"]), (129, ["int8-weights", "int8"]), (254, ["int8"])]
)
def test_files_have_no_more_values_than_the_callback_gave(keras, rng, clusters, methods):
    model, x = trained(keras, rng, clusters)
    for method in methods:
        result = convert(model, method, x if method == "int8" else None)
        found = {kernel.layer: kernel.values for kernel in kernels(schema.read(result.bytes).graph)}
        assert found.keys() == {"first", "second", "last"}
        assert all(1 < values <= clusters for values in found.values()), (method, found)
        error = np.abs(runtime.load(result.bytes)(x) - np.asarray(model(x))).max()
        assert error < 0.05, method

"""Zeros and clusters that TensorFlow's model optimization toolkit has trained are in the file, wrapped or stripped."""

import numpy as np
import pytest

from converter import convert

tfmot = pytest.importorskip("tensorflow_model_optimization")


def base():
    import tf_keras

    layers = tf_keras.layers
    inputs = layers.Input((8, 8, 3))
    x = layers.BatchNormalization(name="norm")(layers.Conv2D(12, 3, use_bias=False, name="conv")(inputs))
    return tf_keras.Model(inputs, layers.Dense(10, name="head")(layers.Flatten()(layers.ReLU()(x))))


def trained(model, x, callbacks=()):
    import tf_keras

    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, np.arange(len(x)) % 10, batch_size=16, verbose=0, callbacks=list(callbacks))
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strip", [False, True], ids=["wrapped", "stripped"])
def test_pruned(rng, strip):
    x = rng.normal(size=(32, 8, 8, 3)).astype(np.float32)
    sparsity = tfmot.sparsity.keras
    model = sparsity.prune_low_magnitude(base(), sparsity.ConstantSparsity(0.75, 0, frequency=1))
    trained(model, x, [sparsity.UpdatePruningStep()])
    model = sparsity.strip_pruning(model) if strip else model
    for quantize in ("none", "int8"):
        result = convert(model, quantize, x if quantize == "int8" else None)
        rows = {row.source.layer: row for row in result.report.preserved}
        assert {name: row.source.zeros for name, row in rows.items()} == {"conv": 243, "head": 3240}
        assert all(row.file.zeros >= row.source.zeros for row in rows.values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strip", [False, True], ids=["wrapped", "stripped"])
def test_clustered(rng, strip):
    x = rng.normal(size=(32, 8, 8, 3)).astype(np.float32)
    clustering = tfmot.clustering.keras
    start = clustering.CentroidInitialization.KMEANS_PLUS_PLUS
    model = trained(clustering.cluster_weights(base(), number_of_clusters=8, cluster_centroids_init=start), x)
    model = clustering.strip_clustering(model) if strip else model
    for quantize in ("none", "int8"):
        result = convert(model, quantize, x if quantize == "int8" else None)
        rows = {row.source.layer: row for row in result.report.preserved}
        assert sorted(rows) == ["conv", "head"]
        assert all(1 < row.file.values <= 8 for row in rows.values())

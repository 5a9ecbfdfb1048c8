"""Models of TensorFlow's model optimization toolkit: pruned, clustered and quantization-aware ones, in every form."""

import numpy as np
import pytest

from converter import frontends
from schema import evaluate
from schema.errors import UnsupportedError
from tests.support.keras_parity import compare, outputs

tfmot = pytest.importorskip("tensorflow_model_optimization")


def base(keras):
    L = keras.layers
    inputs = L.Input((8, 8, 3))
    x = L.BatchNormalization(name="bn")(L.Conv2D(4, 3, name="conv")(inputs))
    return keras.Model(inputs, L.Dense(3, name="dense")(L.Flatten(name="flat")(L.ReLU(name="act")(x))))


def pruned(model):
    return tfmot.sparsity.keras.prune_low_magnitude(model, tfmot.sparsity.keras.ConstantSparsity(0.5, 0))


def clustered(model):
    linear = tfmot.clustering.keras.CentroidInitialization.LINEAR
    return tfmot.clustering.keras.cluster_weights(model, number_of_clusters=4, cluster_centroids_init=linear)


def quantized(model):
    return tfmot.quantization.keras.quantize_model(model)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrap", [pruned, clustered, quantized])
def test_wrapped_models(rng, tmp_path, wrap):
    import tf_keras

    model = wrap(base(tf_keras))
    x = rng.normal(size=(3, 8, 8, 3)).astype(np.float32)
    if wrap is quantized:
        with pytest.raises(UnsupportedError, match=r"layer 'quantize_layer'.*train"):
            frontends.read(model)
        for _ in range(3):
            model(x, training=True)
    expected = outputs(model, [x])
    model.save(tmp_path / "model.h5")
    model.save(tmp_path / "folder", save_format="tf")
    for source in (model, tmp_path / "model.h5", tmp_path / "folder"):
        graph = frontends.read(source)
        compare(evaluate.run(graph, [x]), expected, 1e-5)
        assert {"conv", "bn", "act", "flat", "dense"} <= {node.name for node in graph.nodes}
    if wrap is clustered:
        weights = next(node.inputs[1].value for node in graph.nodes if node.op == "CONV_2D")
        assert len(np.unique(weights)) <= 4
    if wrap is quantized:
        assert sum(node.op == "QUANTIZE" for node in graph.nodes) == 3

"""Models of TensorFlow's model optimization toolkit: pruned, clustered and quantization-aware ones, in every form."""

import numpy as np
import pytest

import converter
import runtime
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


def scheme(name):
    combine = tfmot.experimental.combine
    return {
        "QAT": None,
        "PQAT": combine.Default8BitPrunePreserveQuantizeScheme,
        "CQAT": combine.Default8BitClusterPreserveQuantizeScheme,
        "PCQAT": lambda: combine.Default8BitClusterPreserveQuantizeScheme(preserve_sparsity=True),
    }[name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["QAT", "PQAT", "CQAT", "PCQAT"])
def test_quantize_aware_models_become_int8_without_data(rng, tmp_path, name):
    import tf_keras

    tf_keras.utils.set_random_seed(3)
    model = base(tf_keras)
    kernel = model.get_layer("dense").kernel
    values = np.float32([-0.2, -0.1, 0.0, 0.1, 0.3])
    kernel.assign(values[np.abs(kernel.numpy()[..., None] - values).argmin(-1)])
    zeros = kernel.numpy() == 0
    keras = tfmot.quantization.keras
    made = scheme(name)
    annotated = keras.quantize_annotate_model(model)
    model = keras.quantize_model(model) if made is None else keras.quantize_apply(annotated, made())
    labels = rng.integers(0, 3, 128)
    x = (rng.normal(size=(128, 8, 8, 3)) + 2 * np.eye(3)[labels][:, None, None]).astype(np.float32)
    model.compile(tf_keras.optimizers.Adam(0.01), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, labels, epochs=3, verbose=0)
    model.save(tmp_path / "model.h5")
    expected = model.predict(x, verbose=0)
    # tf_keras itself does not load the files of cluster-preserving ones again ("Weight count mismatch").
    for source in (model,) if "C" in name else (model, tmp_path / "model.h5"):
        result = converter.convert(source)
        assert {row.dtype for row in result.report.quantization.rows} == {"int8"}
        (end,) = [node for node in result.report.graph.nodes if node.op == "DEQUANTIZE"]
        got = runtime.load(result.bytes)(x)
        assert np.abs(got - expected).max() <= 1.01 * end.inputs[0].quantization.scale[0]
        assert np.mean(got.argmax(1) == expected.argmax(1)) > 0.98
    (dense,) = [node for node in result.report.graph.nodes if node.op == "FULLY_CONNECTED"]
    if name.startswith("P"):
        assert not dense.inputs[1].value.T[zeros].any()
    if "C" in name:
        assert np.unique(dense.inputs[1].value).size <= 5

"""3-D convolutions and poolings while training: integers, with the BatchNorm and the activation behind them."""

import numpy as np
import pytest

import runtime
import xnn_tf
from tests.support.quantize_aware import assert_file_agrees, computes_in, trained


def model_of(keras):
    L = keras.layers
    video = L.Input((4, 6, 6, 2), name="video")
    x = L.Conv3D(4, (2, 3, 3), padding="same", use_bias=False, name="stem")(video)
    x = L.ReLU(name="relu")(L.BatchNormalization(momentum=0.9, name="bn")(x))
    x = L.ZeroPadding3D(1)(L.MaxPooling3D(2)(x))
    x = L.AveragePooling3D((1, 2, 2), name="average")(L.Conv3D(4, 2, activation="relu", name="middle")(x))
    x = L.Conv3DTranspose(3, 2, strides=(1, 2, 2), activation="tanh", name="up")(x)
    x = L.UpSampling3D((1, 2, 1))(L.Cropping3D(((1, 0), (0, 0), (0, 1)))(x))
    x = L.GlobalAveragePooling3D(name="mean")(x)
    return keras.Model(video, L.Dense(2, name="scores")(x))


@pytest.mark.parametrize("recipe", [{"weights": 4}, {"activations": 16}])
def test_the_file_is_what_was_trained(keras, rng, recipe):
    x = rng.normal(0.2, 1, (64, 4, 6, 6, 2)).astype(np.float32)
    y = x.mean(axis=(1, 2, 3))
    qat = trained(keras, model_of(keras), x, y, 2, recipe=recipe)
    assert qat.get_layer("quant_stem").batch_norm.name == "bn" and qat.get_layer("quant_stem").activation.name == "relu"
    result = assert_file_agrees(qat, x, 0.9)
    assert set.union(*computes_in(result).values()) == {"int16" if "activations" in recipe else "int8"}
    kinds = [node.op for node in result.report.graph.nodes]
    assert kinds.count("CONV_3D") == 2 and kinds.count("CONV_3D_TRANSPOSE") == 1 and "MUL" not in kinds
    if "weights" in recipe:
        kernels = [n.inputs[1].value for n in result.report.graph.nodes if n.op.startswith("CONV_3D")]
        assert all(np.abs(kernel).max() <= 7 for kernel in kernels)
    np.testing.assert_array_equal(xnn_tf.integer_forward(qat)(x), runtime.load(result.bytes)(x))
    got, bare = qat.predict(x, verbose=0), runtime.load(result.bytes)(x)
    assert np.abs(got - bare).max() < 0.5 * np.abs(got - got.mean(axis=0)).max()  # it depends on the input

"""Nets of 3-D convolutions and poolings, as for video: integers all through, and as exact as those of images."""

import numpy as np
import pytest

import converter
import runtime
import schema
from schema import fixedpoint
from tests.support.quantized_graphs import errors_in_steps, quantized_nodes

SNR = {"int8": 30, "int16x8": 45, "int8-weights": 45}
"""dB that each method has to keep."""


@pytest.fixture(scope="module")
def model():
    import keras

    keras.utils.set_random_seed(3)
    L = keras.layers
    video = keras.Input((6, 12, 13, 3), name="video")
    x = L.Conv3D(8, (2, 3, 3), strides=(1, 2, 2), padding="same", use_bias=False, name="stem")(video)
    x = L.ReLU(name="stem_relu")(L.BatchNormalization(name="stem_bn")(x))
    x = L.ZeroPadding3D(1, name="pad")(L.MaxPooling3D((2, 2, 2), padding="same", name="max")(x))
    skip = L.Conv3D(8, 3, padding="same", activation="relu", name="middle")(x)
    x = L.Conv3D(8, 1, name="project")(L.AveragePooling3D(2, name="average")(skip))
    x = L.Conv3DTranspose(6, 3, strides=2, padding="same", activation="relu", name="up")(x)
    x = L.Cropping3D(((0, 0), (0, 0), (1, 0)), name="crop")(x)
    x = L.Concatenate(name="both")([x, L.Cropping3D(((1, 0), (0, 1), (1, 0)), name="other")(skip)])
    x = L.GlobalAveragePooling3D(name="mean")(L.UpSampling3D(2, name="larger")(x))
    built = keras.Model(video, L.Dense(5, name="scores")(x))
    rng = np.random.default_rng(8)
    for layer in built.layers:  # biases and statistics that are not 0 and 1
        weights = layer.get_weights()
        if weights and layer.name != "stem_bn":
            layer.set_weights([weights[0], *(rng.normal(0, 0.2, b.shape) for b in weights[1:])])
    built.get_layer("stem_bn").set_weights(
        [rng.uniform(-1.5, 1.5, 8), rng.normal(1, 1, 8), rng.normal(0, 0.3, 8), rng.uniform(0.2, 2, 8)]
    )
    return built


def videos(count, seed=9):
    noise = np.random.default_rng(seed).normal(0.3, 1, (count, 6, 12, 13, 3))
    return (noise + np.roll(noise, 1, 1) + np.roll(noise, 1, 2)).astype(np.float32)


@pytest.mark.parametrize("method", SNR)
def test_a_net_of_volumes(model, method):
    result, x = converter.convert(model, method, videos(24)), videos(8, seed=10)
    real, found = np.asarray(model(x)), runtime.load(result.bytes)(x)
    snr = 10 * np.log10(np.var(real) / np.mean((real - found) ** 2))
    assert snr > SNR[method], snr
    graph = schema.read(result.bytes).graph
    computing = [n for n in graph.nodes if n.op not in ("QUANTIZE", "DEQUANTIZE") and n.outputs[0].dtype != np.int32]
    if method == "int8-weights":
        stored = [n.inputs[1].constant.values.dtype for n in computing if n.op == "CONV_3D"]
        assert stored.count(np.int8) == 2  # the 1x1x1 kernel is too small
        return
    assert quantized_nodes(graph) == computing
    kinds = [n.op for n in computing]
    assert kinds.count("CONV_3D") == 3 and kinds.count("CONV_3D_TRANSPOSE") == 1 and "MUL" not in kinds
    assert {"MAX_POOL_3D", "AVERAGE_POOL_3D"} <= set(kinds)
    with fixedpoint.requantization("FP32_ROUND_EVEN"):
        np.testing.assert_array_equal(schema.evaluate.run(graph, [x])[0], found)
        for node, steps in errors_in_steps(graph, [x]):
            # Requantizing int16 has 15 bits of each multiplier.
            assert steps < (1.01 if method == "int16x8" else 0.51), (node, steps)


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_in_few_bits(model, bits):
    result = converter.convert(model, "int8", videos(24), weights=bits)
    graph = schema.read(result.bytes).graph
    kernels = [n.inputs[1].value for n in graph.nodes if n.op.startswith("CONV_3D")]
    assert len(kernels) == 4 and all(k.dtype == np.int8 for k in kernels)
    assert all(np.abs(k).max() <= 2 ** (bits - 1) - 1 for k in kernels)
    x = videos(8, seed=10)
    plain = runtime.load(converter.convert(model, weights=bits).bytes)(x)
    snr = 10 * np.log10(np.var(plain) / np.mean((plain - runtime.load(result.bytes)(x)) ** 2))
    assert snr > 28, snr

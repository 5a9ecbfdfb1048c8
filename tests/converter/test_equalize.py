"""Equalization and bias correction through `converter.convert` and the command line, on a Keras net that needs them."""

import numpy as np
import pytest

import converter
import runtime
from converter.__main__ import main
from schema import InputError


@pytest.fixture(scope="module")
def model():
    """A MobileNet's first layers, whose BatchNorms make channels of very different size."""
    import keras

    keras.utils.set_random_seed(3)
    L = keras.layers
    inputs = keras.Input((12, 12, 3), name="image")
    x = L.ReLU(name="relu1")(L.BatchNormalization(name="bn1")(L.Conv2D(16, 3, name="stem", use_bias=False)(inputs)))
    x = L.DepthwiseConv2D(3, name="depthwise", use_bias=False)(x)
    x = L.ReLU(6, name="relu2")(L.BatchNormalization(name="bn2")(x))
    x = L.ReLU(6, name="relu3")(L.BatchNormalization(name="bn3")(L.Conv2D(24, 1, name="pointwise")(x)))
    built = keras.Model(inputs, L.Dense(5, name="scores")(L.GlobalAveragePooling2D(name="pool")(x)), name="net")
    factors = [np.logspace(0, -3, n, dtype=np.float32) for n in (16, 16)]
    for name, factor in zip(("bn1", "bn2"), factors, strict=True):
        gamma, beta, mean, variance = built.get_layer(name).get_weights()
        built.get_layer(name).set_weights([gamma * factor, beta + 0.1 * factor, mean, variance])
    (kernel,) = built.get_layer("depthwise").get_weights()
    built.get_layer("depthwise").set_weights([kernel / factors[0][:, np.newaxis]])
    kernel, bias = built.get_layer("pointwise").get_weights()
    built.get_layer("pointwise").set_weights([kernel / factors[1][:, np.newaxis], bias])
    return built


@pytest.fixture(scope="module")
def samples():
    x = np.random.default_rng(5).normal(size=(96, 12, 12, 3))
    return (x + np.roll(x, 1, 1) + np.roll(x, 1, 2)).astype(np.float32)


def snr(model, data, x):
    expected, found = model.predict(x, verbose=0), runtime.load(data).predict(x)
    return 10 * np.log10(np.sum(expected**2) / np.sum((found - expected) ** 2))


def test_int8_of_a_net_with_unequal_channels(model, samples):
    calibration, x = samples[:64], samples[64:]
    plain = converter.convert(model, "int8", calibration)
    better = converter.convert(model, "int8", calibration, equalize=True, bias_correction=True)
    assert snr(model, better.bytes, x) > max(snr(model, plain.bytes, x) + 10, 25)
    equalization, correction = better.report.quantization.notes
    assert equalization.endswith("kept for 3 of 3: stem -> depthwise, depthwise -> pointwise, pointwise -> scores")
    assert correction.startswith("bias correction: ")
    assert equalization in str(better.report)
    names = [layer.name for layer in better.report.layers]
    assert names == [layer.name for layer in plain.report.layers]


def test_command_line(model, samples, tmp_path, capsys):
    model.save(tmp_path / "net.keras")
    np.save(tmp_path / "calib.npy", samples[:32])
    arguments = [str(tmp_path / "net.keras"), str(tmp_path / "net.xnn"), "--equalize", "--bias-correction"]
    assert main([*arguments, "--quantize", "int8", "--calibration", str(tmp_path / "calib.npy")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed[:2]] == ["equalization", "bias correction"]
    expected = converter.convert(model, "int8", samples[:32], equalize=True, bias_correction=True)
    assert (tmp_path / "net.xnn").read_bytes() == expected.bytes
    assert main([*arguments, "--quantize", "float16"]) == 2
    assert "equalize is for quantize='int8'" in capsys.readouterr().err


def test_methods_that_have_no_use_for_it(model):
    for options in ({"equalize": True}, {"bias_correction": True}):
        with pytest.raises(InputError, match=f"{next(iter(options))} is for"):
            converter.convert(model, "float16", **options)

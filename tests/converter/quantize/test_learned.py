"""Ranges that FakeQuant nodes carry become parameters of int8 and int16 tensors, without calibration data."""

import numpy as np
import pytest
import tensorflow as tf

import converter
import runtime
from converter.__main__ import main
from schema.errors import InputError

F = np.float32


def fake(x, low, high, bits=8):
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high, bits, narrow_range=bits == 16)


class Net(tf.Module):
    """Two dense layers and what is between them, rounded as the converter rounds."""

    def __init__(self, rng, bits=8, weight_bits=8, rounds=True):
        super().__init__()
        most = 2 ** (weight_bits - 1) - 1
        self.bits, self.rounds = bits, rounds
        self.kernels = []
        for shape in ((6, 10), (10, 3)):
            integers = rng.integers(-most, most + 1, shape)
            integers[0] = most
            self.kernels.append(tf.Variable((integers * rng.uniform(0.1, 1, shape[1]) / most).astype(F)))

    def fake(self, x, low, high):
        return fake(x, *((low, high) if self.bits == 8 else (-high, high)), self.bits)

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, "x")])
    def __call__(self, x):
        x = self.fake(x, -3.0, 3.0)
        x = tf.nn.relu(x @ self.kernels[0])
        if self.rounds:
            x = self.fake(x, 0.0, 5.0)
        return self.fake(tf.reshape(x, [-1, 10]) @ self.kernels[1] + [0.1, 0.2, 0.3], -9.0, 9.0)


def saved(net, path):
    tf.saved_model.save(net, str(path))
    return path


@pytest.mark.parametrize(("bits", "weight_bits", "dtype"), [(8, 8, "int8"), (8, 4, "int8"), (16, 8, "int16")])
def test_learned_ranges_make_an_integer_file(rng, tmp_path, bits, weight_bits, dtype):
    net = Net(rng, bits, weight_bits)
    result = converter.convert(saved(net, tmp_path / "net"))
    rows = [row for row in result.report.quantization.rows if row.op == "FULLY_CONNECTED"]
    assert [row.dtype for row in rows] == [dtype, dtype] and result.report.quantization.samples == 0
    x = rng.normal(size=(200, 6)).astype(F)
    step = 18 / 255 if bits == 8 else 9 / 32767
    assert np.abs(runtime.load(result.bytes)(x) - net(x).numpy()).max() <= 1.01 * step
    weights = [n.inputs[1] for n in result.report.graph.nodes if n.op == "FULLY_CONNECTED"]
    for tensor, kernel in zip(weights, net.kernels, strict=True):
        np.testing.assert_allclose(
            tensor.value * tensor.quantization.scale[:, None].astype(F), kernel.numpy().T, rtol=1e-6
        )
        assert np.abs(tensor.value).max() == 2 ** (weight_bits - 1) - 1


def test_a_result_that_two_layers_round_to_ranges_of_their_own(rng, tmp_path):
    """Its integers have the first range, and integers of the second are made of them: all layers are integers."""

    class Two(Net):
        @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, "x")])
        def __call__(self, x):
            y = tf.nn.relu(fake(x, -3.0, 3.0) @ self.kernels[0])
            first = fake(fake(y, 0.0, 5.0) @ self.kernels[1], -9.0, 9.0)
            return first, fake(fake(y, 0.0, 2.0) @ self.kernels[1][:, ::-1], -5.0, 5.0)

    net = Two(rng)
    result = converter.convert(saved(net, tmp_path / "net"))
    ops = [node.op for node in result.report.graph.nodes]
    assert ops.count("QUANTIZE") == 2 and ops.count("DEQUANTIZE") == 2
    assert {row.dtype for row in result.report.quantization.rows if row.op == "FULLY_CONNECTED"} == {"int8"}
    x = rng.normal(size=(200, 6)).astype(F)
    (first, second), expected = runtime.load(result.bytes)(x).values(), net(x)
    assert np.abs(first - expected[0].numpy()).max() <= 1.01 * 18 / 255
    # Rounding twice moves each of ten inputs by half a step of 5/255 at most beside what training rounds.
    weights = np.abs(net.kernels[1].numpy()[:, ::-1]).sum(axis=0)
    assert (np.abs(second - expected[1].numpy()) <= weights * 5 / 255 + 10 / 255).all()
    clear = np.abs(second - expected[1].numpy()) < 0.5 * 10 / 255
    assert clear.mean() > 0.8, clear.mean()


def test_a_layer_without_learned_range_stays_float_and_says_so(rng, tmp_path):
    net = Net(rng, rounds=False)
    result = converter.convert(saved(net, tmp_path / "net"))
    reasons = [row.reason for row in result.report.quantization.rows if row.reason]
    assert reasons and all("no range was learned" in reason for reason in reasons)
    x = rng.normal(size=(50, 6)).astype(F)
    assert np.abs(runtime.load(result.bytes)(x) - net(x).numpy()).max() <= 18 / 255 * 1.01


def test_calibration_data_gives_the_ranges_that_were_not_learned(rng, tmp_path):
    x = rng.normal(size=(50, 6)).astype(F)
    result = converter.convert(saved(Net(rng, rounds=False), tmp_path / "net"), "int8", x)
    assert {row.dtype for row in result.report.quantization.rows} == {"int8"}
    assert result.report.quantization.samples == 50


def test_on_the_command_line(rng, tmp_path, capsys):
    assert main([str(saved(Net(rng), tmp_path / "net")), str(tmp_path / "net.xnn")]) == 0
    assert ", int8, converted" in capsys.readouterr().out
    assert main([str(tmp_path / "net"), str(tmp_path / "b.xnn"), "--quantize", "int8", "--io-dtype", "int8"]) == 0
    assert str(runtime.load(tmp_path / "b.xnn").inputs[0].dtype) == "int8"


def test_equalization_is_refused(rng, tmp_path):
    path = saved(Net(rng), tmp_path / "net")
    with pytest.raises(InputError, match="undo what"):
        converter.convert(path, "int8", rng.normal(size=(50, 6)).astype(F), equalize=True)


def test_a_range_holds_through_a_reshape_of_what_a_float_layer_made(rng, tmp_path):
    kernel = rng.integers(-127, 128, (6, 3)).astype(F) / 127

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 3], tf.float32, "x")])
    def net(x):
        x = tf.reshape(tf.exp(x) / (1.0 + tf.reduce_sum(tf.exp(x), 2, keepdims=True)), [-1, 6])
        return fake(fake(x, 0.0, 1.0) @ kernel, -2.0, 2.0)

    module = tf.Module()
    module.net = net
    tf.saved_model.save(module, str(tmp_path / "net"), signatures=net)
    result = converter.convert(tmp_path / "net")
    assert {row.op: row.dtype for row in result.report.quantization.rows}["FULLY_CONNECTED"] == "int8"
    x = rng.normal(size=(50, 2, 3)).astype(F)
    assert np.abs(runtime.load(result.bytes)(x) - net(x).numpy()).max() <= 4 / 255 * 1.01


def test_an_input_is_rounded_as_learned_before_it_is_rounded_to_another_scale(rng, tmp_path):
    kernel = rng.integers(-127, 128, (6, 3)).astype(F) / 127

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, "x")])
    def net(x):
        x = fake(x, -3.0, 3.0)
        return fake(tf.concat([x, fake(x @ kernel, -2.0, 2.0)], 1), -2.95, 2.95)

    module = tf.Module()
    module.net = net
    tf.saved_model.save(module, str(tmp_path / "net"), signatures=net)
    x = rng.uniform(-2.9, 2.9, (2000, 6)).astype(F)
    file = runtime.load(converter.convert(tmp_path / "net").bytes)
    np.testing.assert_allclose(file(x)[:, :6], net(x).numpy()[:, :6], atol=1e-4)

"""`converter.convert` and its command line."""

import subprocess
import sys

import numpy as np
import pytest

import converter
import schema
from converter.__main__ import main
from schema.errors import CalibrationError, InputError
from tests.support.keras_parity import randomize


@pytest.fixture(scope="module")
def model():
    import keras

    keras.utils.set_random_seed(3)
    L = keras.layers
    inputs = keras.Input((8, 8, 3), name="image")
    x = L.BatchNormalization(name="bn")(L.Conv2D(8, 3, name="conv")(inputs))
    x = L.GlobalAveragePooling2D(name="pool")(L.ReLU(name="act")(x))
    built = keras.Model(inputs, L.Dense(4, name="scores")(x), name="net")
    randomize(built, np.random.default_rng(4))
    return built


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    model.export(str(path), verbose=False)
    return path


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(5).normal(size=(16, 8, 8, 3)).astype(np.float32)


def test_result(model, tmp_path):
    result = converter.convert(model)
    report = result.report
    assert report.bytes == len(result.bytes)
    assert [layer.name for layer in report.layers] == ["conv", "pool", "scores"]
    assert report.layers[0].parameters == 8 * 27 + 8
    assert report.layers[0].stored_bytes == 4 * report.layers[0].parameters
    text = str(report)
    besides = report.bytes - sum(layer.stored_bytes for layer in report.layers)
    assert "(graph, names, checksums)" in text and f" {besides}\n" in text
    for part in ("net", "input 'image': float32[?x8x8x3]", "output 'scores'", "fold_batch_norm", "conv"):
        assert part in text
    path = result.save(tmp_path / "net.xnn")
    assert path.read_bytes() == result.bytes
    stored = schema.read(path)
    assert (stored.graph.input_names, stored.graph.output_names) == (["image"], ["scores"])


def test_conversion_gives_the_same_bytes_each_time(model, folder):
    assert converter.convert(model).bytes == converter.convert(model).bytes
    assert converter.convert(folder).bytes == converter.convert(folder).bytes


def test_int8_and_float16(model, samples):
    plain = converter.convert(model).report
    small = converter.convert(model, "int8", samples)
    assert small.report.quantization.method == "int8"
    assert small.report.quantization.samples == 16
    assert schema.read(small.bytes).requantization == "FP32_ROUND_EVEN"
    graph = schema.read(small.bytes).graph
    assert (graph.inputs[0].dtype, graph.outputs[0].dtype) == (np.float32, np.float32)
    inside = schema.read(converter.convert(model, "int8", samples, io_dtype="int8").bytes).graph
    assert (inside.inputs[0].dtype, inside.outputs[0].dtype) == (np.int8, np.int8)
    half = converter.convert(model, "float16").report
    assert sum(x.stored_bytes for x in half.layers) < 0.6 * sum(x.stored_bytes for x in plain.layers)


def test_calibration_takes_what_fit_takes(model, samples):
    import tensorflow as tf

    expected = converter.convert(model, "int8", samples).bytes
    batches = [samples[:8], samples[8:]]
    for calibration in (
        {"image": samples},
        batches,
        [(batch,) for batch in batches],
        [{"image": batch} for batch in batches],
        tf.data.Dataset.from_tensor_slices(samples).batch(8),
        tf.data.Dataset.from_tensor_slices((samples, np.zeros(16))).batch(8),
    ):
        assert converter.convert(model, "int8", calibration).bytes == expected


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"quantize": "int4"}, InputError, "int4.*none, int8, int16x8"),
        ({"io_dtype": "int16", "quantize": "int8"}, InputError, "int16"),
        ({"io_dtype": "int8"}, InputError, "needs quantize='int8'"),
        ({"calibration": np.zeros((2, 8, 8, 3))}, InputError, "quantize='int8'"),
        ({"quantize": "int8"}, CalibrationError, "image"),
        ({"quantize": "int8", "calibration": np.zeros((2, 8, 8, 4), np.float32)}, CalibrationError, "image"),
        ({"quantize": "int8", "calibration": {"picture": np.zeros((2, 8, 8, 3))}}, CalibrationError, "picture"),
        ({"quantize": "int8", "calibration": np.full((2, 8, 8, 3), np.nan, np.float32)}, CalibrationError, "NaN"),
        ({"signature": "serve"}, InputError, "signature 'serve'"),
        (
            {"quantize": "int8", "observer": "median", "calibration": np.zeros((2, 8, 8, 3), np.float32)},
            InputError,
            "median",
        ),
    ],
)
def test_bad_arguments(model, arguments, error, match):
    with pytest.raises(error, match=match):
        converter.convert(model, **arguments)


# ---- the command line ----


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_command_line(folder, samples, tmp_path, capsys):
    np.savez(tmp_path / "calib.npz", image=samples)
    out = tmp_path / "out.xnn"
    assert run(folder, out) == 0
    assert capsys.readouterr().out.startswith(f"{out}: {out.stat().st_size} bytes")
    assert out.read_bytes() == converter.convert(folder).bytes
    arguments = ("--quantize", "int8", "--calibration", tmp_path / "calib.npz", "--explain", "--observer", "percentile")
    assert run(folder, out, *arguments) == 0
    printed = capsys.readouterr().out
    assert "fold_batch_norm" in printed
    assert "percentile" in printed
    assert out.read_bytes() == converter.convert(folder, "int8", samples, observer="percentile").bytes


@pytest.mark.parametrize(
    ("arguments", "keywords", "dtypes"),
    [
        (["int8", "--keep-float", "scores"], {"keep_float": "scores"}, {"int8", "float32"}),
        (["int8", "--int16", "pool, conv", "--keep-float", "s*", "--keep-float", "scores"],
         {"int16": ("conv", "pool"), "keep_float": "s*"}, {"int16", "float32"}),
        (["int16x8"], {}, {"int16"}),
        (["int16x8", "--io-dtype", "int16"], {"io_dtype": "int16"}, {"int16"}),
    ],
)  # fmt: skip
def test_command_line_chooses_types_by_layer(folder, samples, tmp_path, arguments, keywords, dtypes):
    np.save(tmp_path / "calib.npy", samples)
    assert run(folder, tmp_path / "out.xnn", "--quantize", *arguments, "--calibration", tmp_path / "calib.npy") == 0
    result = converter.convert(folder, arguments[0], samples, **keywords)
    assert (tmp_path / "out.xnn").read_bytes() == result.bytes
    assert {row.dtype for row in result.report.quantization.rows} == dtypes


def test_int8_weights(folder, samples, tmp_path, capsys):
    assert run(folder, tmp_path / "out.xnn", "--quantize", "int8-weights", "--explain") == 0
    assert "216 weights are too few" in capsys.readouterr().out
    assert (tmp_path / "out.xnn").read_bytes() == converter.convert(folder, "int8-weights").bytes
    assert converter.convert(folder, "int8-weights", samples).report.quantization.samples == 16


def test_keras_file(model, tmp_path):
    model.save(tmp_path / "model.keras")
    assert run(tmp_path / "model.keras", tmp_path / "out.xnn", "--quantize", "float16") == 0
    assert schema.read(tmp_path / "out.xnn").graph.output_names == ["scores"]


def bad_calibration(folder, value):
    path = folder / "calibration.npy"
    np.save(path, value)
    return "--quantize", "int8", "--calibration", path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda saved, tmp: (tmp / "missing", tmp / "out.xnn"), "does not exist"),
        (lambda saved, tmp: (tmp, tmp / "out.xnn"), "no SavedModel"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", "--signature", "train"), "there are serve, serving_default"),
        (lambda saved, tmp: (saved, tmp / "nowhere" / "out.xnn"), "there is no folder"),
        (lambda saved, tmp: (saved, tmp), "is a folder"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", "--quantize", "int8"), "--calibration"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", "--quantize", "int8", "--calibration", "none.npy"), "none.npy"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", *bad_calibration(tmp, np.zeros((4, 7, 8, 3)))), "image"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", *bad_calibration(tmp, np.full((4, 8, 8, 3), np.nan))), "NaN"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", *bad_calibration(tmp, np.array(["text"]))), "image"),
        (lambda saved, tmp: (saved, tmp / "out.xnn", "--quantize", "int8-weights", "--keep-float", "Conv"), "are conv"),
        (
            lambda saved, tmp: (saved, tmp / "out.xnn", "--quantize", "float16", "--int16", "conv"),
            "for quantize='int8'",
        ),
    ],
)
def test_bad_input_is_one_message_and_keeps_the_old_file(folder, tmp_path, capsys, arguments, says):
    old = tmp_path / "out.xnn"
    old.write_bytes(b"old")
    assert run(*arguments(folder, tmp_path)) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert old.read_bytes() == b"old"
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_other_backend(folder, tmp_path, repository):
    """In its own process, since Keras reads the environment once."""
    import os

    done = subprocess.run(
        [sys.executable, "-m", "converter", folder, tmp_path / "out.xnn"],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "KERAS_BACKEND=tensorflow" in done.stderr
    assert not (tmp_path / "out.xnn").exists()


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help(capsys, argument):
    with pytest.raises(SystemExit) as stopped:
        run(argument)
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert "python -m converter saved_model/ out.xnn" in printed if argument == "--help" else printed.startswith("xnn ")

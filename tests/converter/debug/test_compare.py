"""`converter.debug.compare` and its command line."""

import json
import math

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

import converter.debug
from converter.debug.__main__ import main
from schema import CalibrationError, InputError, Quantization
from tests.support.tflite_files import FileBuilder


def dense_net(units=(16, 16, 4)) -> bytes:
    """A float `.tflite`: dense layers with ReLU between; one unit of the second is a thousand times larger."""
    rng = np.random.default_rng(1)
    b = FileBuilder()
    y = x = b.tensor(np.float32, (1, 16), name="x", shapeSignature=np.array([-1, 16], np.int32))
    depth = 16
    for i, size in enumerate(units):
        weights = rng.normal(0, 1 / np.sqrt(depth), (size, depth))
        if i == 1:
            weights[0] *= 1000
        if i == 2:
            weights[:, 0] /= 1000
        out = b.tensor(np.float32, (1, size), name=f"dense_{i}", shapeSignature=np.array([-1, size], np.int32))
        constant = b.constant(weights.astype(np.float32))
        options = tfl.FullyConnectedOptionsT()
        options.fusedActivationFunction = int(i < 2)  # ReLU, or the layers would be one
        b.operator("FULLY_CONNECTED", [y, constant, -1], [out], options)
        y, depth = out, size
    return b.finish([x], [y])


@pytest.fixture(scope="module")
def net():
    return dense_net()


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(5).normal(size=(40, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def comparison(net, samples):
    return converter.debug.compare(net, samples, advise=False)


def test_rows_are_worst_first_and_tell_whose_error_it_is(comparison):
    assert [row.snr for row in comparison.rows] == sorted(row.snr for row in comparison.rows)
    assert (comparison.method, comparison.samples) == ("int8", 40)
    rows = {row.layer: row for row in comparison.rows}
    assert set(rows) == {"x", "dense_0", "dense_1", "dense_2"}
    assert all(row.dtype == "int8" for row in comparison.rows)
    assert rows["x"].op == "QUANTIZE"
    assert rows["x"].snr == rows["x"].own_snr > 35
    # One of dense_1's units takes all of its range, so that dense_2 gets hardly anything of the others.
    assert not rows["dense_2"].inherited
    assert rows["dense_2"].own_snr < 15 < rows["dense_0"].own_snr
    assert comparison.by_own_error()[0].layer == "dense_2"
    assert comparison.candidates()[0] == "dense_2"
    assert "x" not in comparison.candidates()
    assert comparison.outputs == {"dense_2": pytest.approx(comparison.snr)}
    assert comparison.snr == rows["dense_2"].snr
    for row in comparison.rows:
        step = row.max_error / row.max_error_steps
        assert row.own_max_error / row.own_max_error_steps == pytest.approx(step)
        assert -1 <= row.cosine <= 1


def test_text_and_json(comparison):
    text = str(comparison)
    assert text.index("dense_2  FULLY_CONNECTED") < text.index("dense_0  FULLY_CONNECTED")
    short = comparison.text(top=1)
    assert "dense_0" not in short
    assert "3 better ones left out" in short
    again = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert [row["layer"] for row in again["layers"]] == [row.layer for row in comparison.rows]
    assert again["layers"][0]["snr"] == comparison.rows[0].snr
    assert again["advice"] is None


def test_nodes_of_a_layer_share_a_line():
    rows = [
        converter.debug.Row("lstm", "ADD", "int8", 20.0, 0.9, 1.0, 5.0, 21.0, 0.9, 0.5, 2.5),
        converter.debug.Row("dense", "ADD", "int8", 25.0, 0.99, 1.0, 5.0, 40.0, 0.9, 0.5, 2.5),
        converter.debug.Row("lstm", "ADD", "int8", 30.0, 0.8, 3.0, 7.0, 19.0, 0.9, 0.5, 9.5),
        converter.debug.Row("lstm", "LOG", "float32", 31.0, 0.8, 3.0),
    ]
    found = converter.debug.Comparison("net", "int8", 1, rows, {"y": 20.0})
    lines = [line.split() for line in str(found).splitlines()[3:]]
    assert lines[0] == ["lstm", "ADD", "x2", "int8", "20.0", "19.0", "0.80000", "3", "7.0", "9.5", "its", "own"]
    assert lines[1] == ["dense", "ADD", "int8", "25.0", "40.0", "0.99000", "1", "5.0", "2.5", "inherited"]
    assert lines[2] == ["lstm", "LOG", "float32", "31.0", "0.80000", "3", "inherited"]
    assert "(1 better ones left out)" in found.text(2)
    assert len(found.to_json()["layers"]) == 4


def test_what_does_not_differ_is_exact():
    row = converter.debug.Row("a", "RELU", "float32", math.inf, 1.0, 0.0)
    found = converter.debug.Comparison("net", "int8", 1, [row], {"y": math.inf})
    assert "exact" in str(found)
    assert row.inherited
    assert found.to_json()["outputs"] == {"y": None}


def test_keras_layers_by_name(samples):
    import keras

    L = keras.layers
    x = keras.Input((16,), name="features")
    y = L.Dense(4, name="scores")(L.ReLU(name="act")(L.BatchNormalization(name="bn")(L.Dense(8, name="hidden")(x))))
    found = converter.debug.compare(keras.Model(x, y, name="net"), samples, advise=False)
    assert {row.layer for row in found.rows} == {"features", "hidden", "scores"}
    assert found.source == "model 'net'"
    assert found.snr > 25


def test_bad_arguments(net, samples):
    compare = converter.debug.compare
    with pytest.raises(InputError, match="'float16'; what is compared with float is int8"):
        compare(net, samples, "float16")
    with pytest.raises(CalibrationError, match="'x'"):
        compare(net, samples[:, :3])
    with pytest.raises(InputError, match="mean"):
        compare(net, samples, observer="mean")


# ---- the command line ----


@pytest.fixture
def files(net, samples, tmp_path):
    (tmp_path / "net.tflite").write_bytes(net)
    np.save(tmp_path / "calib.npy", samples)
    return tmp_path


def test_command_line(files, comparison, capsys):
    arguments = [str(files / "net.tflite"), "--calibration", str(files / "calib.npy"), "--no-advice", "--top", "2"]
    assert main([*arguments, "--json", str(files / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert "dense_2  FULLY_CONNECTED  int8" in printed
    assert "left out" in printed
    written = json.loads((files / "out.json").read_text())
    assert written["layers"] == comparison.to_json()["layers"]


def test_command_line_refuses_in_one_line(files, capsys):
    net, calib = str(files / "net.tflite"), str(files / "calib.npy")
    from ai_edge_litert import schema_py_generated as tfl

    from tests.support.tflite_files import FileBuilder

    b = FileBuilder()
    x, y = (b.tensor(np.int8, (1, 4), None, Quantization(0.1), name=n) for n in "xy")
    weights = b.constant(np.ones((4, 4)), np.int8, Quantization(0.1))
    b.operator("FULLY_CONNECTED", [x, weights, -1], [y], tfl.FullyConnectedOptionsT())
    (files / "int8.tflite").write_bytes(b.finish([x], [y]))
    for arguments, message in (
        ([net, "--calibration", str(files / "none.npy")], "does not exist"),
        ([str(files / "none.tflite"), "--calibration", calib], "none.tflite"),
        ([str(files / "int8.tflite"), "--calibration", calib], "quantized already: there is no float model"),
        ([net, "--calibration", calib, "--json", str(files / "no" / "out.json")], "there is no folder"),
    ):
        assert main(arguments) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1
        assert not captured.out
    with pytest.raises(SystemExit) as stopped:
        main([net])
    assert stopped.value.code == 2
    with pytest.raises(SystemExit):
        main([net, "--calibration", calib, "--top", "0"])

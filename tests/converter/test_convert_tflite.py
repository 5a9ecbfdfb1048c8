"""`.tflite` files through `converter.convert` and the command line."""

import subprocess
import sys

import numpy as np
import pytest

import converter
import runtime
import schema
from converter.__main__ import main
from schema import InputError, Quantization, UnsupportedError
from tests.support.tflite_files import FileBuilder


def dense(quantized: bool, layers: int = 2) -> bytes:
    from ai_edge_litert import schema_py_generated as tfl

    rng = np.random.default_rng(1)
    b = FileBuilder()
    dtype, scale = (np.int8, Quantization(0.1, 3)) if quantized else (np.float32, None)
    y = x = b.tensor(dtype, (4, 16), None, scale, name="x")
    for i in range(layers):
        values = rng.integers(-127, 128, (16, 16))
        weights = b.constant(values if quantized else values / 500, dtype, Quantization(0.002) if quantized else None)
        out = b.tensor(dtype, (4, 16), None, scale, name=f"dense_{i}")
        b.operator("FULLY_CONNECTED", [y, weights, -1], [out], tfl.FullyConnectedOptionsT())
        y = out
    return b.finish([x], [y])


@pytest.fixture
def integers(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(dense(True))
    return path


@pytest.fixture
def floats(tmp_path):
    path = tmp_path / "float.tflite"
    path.write_bytes(dense(False))
    return path


def test_integers_keep_their_dtype_and_scales(integers, tmp_path, capsys):
    out = tmp_path / "net.xnn"
    assert main([str(integers), str(out)]) == 0
    assert "quantized as its source" in capsys.readouterr().out
    assert schema.read(out).requantization == "TFLITE_DOUBLE"
    graph = schema.read(out).graph
    assert graph.inputs[0].type == schema.TensorType((4, 16), np.int8, Quantization(0.1, 3))
    assert graph.outputs[0].quantization == Quantization(0.1, 3)
    assert [node.name for node in graph.nodes] == ["dense_0", "dense_1"]


@pytest.mark.parametrize("method", ["int8", "float16"])
def test_integers_are_not_quantized_again(integers, tmp_path, capsys, method):
    np.save(tmp_path / "calib.npy", np.zeros((8, 16), np.int8))
    arguments = ["--quantize", method]
    if method == "int8":
        arguments += ["--calibration", str(tmp_path / "calib.npy")]
    assert main([str(integers), str(tmp_path / "net.xnn"), *arguments]) == 2
    error = capsys.readouterr().err
    assert "net.tflite is quantized already" in error and len(error.splitlines()) == 1
    assert not (tmp_path / "net.xnn").exists()


def test_floats_can_be_quantized(floats):
    rng = np.random.default_rng(2)
    samples = rng.normal(size=(4, 16)).astype(np.float32)
    plain = converter.convert(floats)
    assert plain.report.quantization is None and "float32" in plain.report.summary()
    expected = runtime.load(plain.bytes)(samples)
    for method, data, tolerance in (("float16", None, 2e-3), ("int8", samples, 3e-2)):
        result = converter.convert(floats, method, data)
        assert result.report.quantization.method == method
        found = runtime.load(result.bytes)(samples)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_a_file_is_known_by_its_identifier(integers, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(integers.read_bytes())
    assert converter.convert(path).bytes == converter.convert(integers).bytes
    assert converter.convert(integers.read_bytes()).bytes == converter.convert(integers).bytes
    (tmp_path / "other.bin").write_bytes(b"nothing")
    with pytest.raises(UnsupportedError, match=r"nothing here reads \.bin files"):
        converter.convert(tmp_path / "other.bin")
    with pytest.raises(InputError, match=r"a \.tflite file of .* bytes is quantized already"):
        converter.convert(integers.read_bytes(), "float16")


def test_damage_is_one_message(integers, tmp_path, capsys):
    integers.write_bytes(integers.read_bytes()[:300])
    assert main([str(integers), str(tmp_path / "net.xnn")]) == 2
    error = capsys.readouterr().err
    assert "net.tflite: " in error and len(error.splitlines()) == 1
    assert not (tmp_path / "net.xnn").exists()


def test_neither_tensorflow_nor_a_silent_failure_without_the_package(integers):
    program = """
import sys
if sys.argv[2] == "without":
    sys.modules["tflite"] = None
import converter
try:
    converter.convert(sys.argv[1])
except converter.convert.__globals__["InputError"].__mro__[1] as error:
    print(type(error).__name__, error)
print("tensorflow" in sys.modules, "keras" in sys.modules)
"""

    def run(how):
        found = subprocess.run([sys.executable, "-c", program, str(integers), how], capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return found.stdout.splitlines()

    assert run("with") == ["False False"]
    message, modules = run("without")
    assert message.startswith("UnsupportedError") and "pip install 'xnn[tflite]'" in message
    assert modules == "False False"

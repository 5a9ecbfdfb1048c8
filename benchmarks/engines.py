"""The engines that `benchmarks/engine.py` compares, each as a function that runs one `.tflite` file's net once."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

Run = Callable[[], np.ndarray]


class Unsupported(Exception):
    """An engine does not take this net; the message says why."""


def xnn(path: Path, x: np.ndarray, threads: int) -> Run:
    import converter
    import runtime

    model = runtime.load(converter.convert(path).bytes, threads=threads)
    return lambda: _first(model(x))


def litert(path: Path, x: np.ndarray, threads: int) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=threads)
    details = interpreter.get_input_details()[0]
    interpreter.resize_tensor_input(details["index"], x.shape)
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]["index"]

    def run() -> np.ndarray:
        interpreter.set_tensor(details["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(output)

    return run


def openvino(path: Path, x: np.ndarray, threads: int) -> Run:
    import openvino as ov

    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    if x.dtype == np.float32:
        options["INFERENCE_PRECISION_HINT"] = "f32"
    try:
        request = ov.Core().compile_model(str(path), "CPU", options).create_infer_request()
        request.infer({0: x})
    except RuntimeError as error:
        raise Unsupported(str(error).splitlines()[0]) from None
    return lambda: request.infer({0: x})[0]


def onnx_runtime(path: Path, x: np.ndarray, threads: int) -> Run:
    """The net by tf2onnx, kept beside the file."""
    import onnxruntime

    converted = path.with_suffix(".onnx")
    if not converted.exists() and os.access(path.parent, os.W_OK):
        command = [sys.executable, "-m", "tf2onnx.convert", "--tflite", path, "--output", converted, "--opset", "17"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unsupported((done.stderr.splitlines() or ["tf2onnx failed"])[-1])
    if not converted.exists():
        raise Unsupported("there is no .onnx file beside the net, and its folder is read-only")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if threads > 1 else "0")
    session = onnxruntime.InferenceSession(str(converted), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


ENGINES: dict[str, Callable[[Path, np.ndarray, int], Run]] = {
    "xnn": xnn,
    "LiteRT": litert,
    "OpenVINO": openvino,
    "ONNX Runtime": onnx_runtime,
}
PACKAGES = {
    "xnn": "xnn",
    "LiteRT": "ai-edge-litert",
    "OpenVINO": "openvino",
    "ONNX Runtime": "onnxruntime",
}


def version(engine: str) -> str | None:
    """Of its package, None where it is not installed."""
    try:
        return importlib.metadata.version(PACKAGES[engine])
    except importlib.metadata.PackageNotFoundError:
        return None


def _first(outputs: np.ndarray | dict[str, np.ndarray]) -> np.ndarray:
    return next(iter(outputs.values())) if isinstance(outputs, dict) else outputs

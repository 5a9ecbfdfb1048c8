"""ResNet8 on CIFAR-10 in int8: accuracy of xnn, of TFLite's converter with the same calibration images, and of Keras.

    python benchmarks/resnet8_int8.py [--observer minmax ...] [--images 10000]

Calibration: the first 500 training images. Accuracy is on the test images. TFLite's file is run by LiteRT with its
reference kernels and with its default ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime
from converter.quantize.observers import OBSERVERS

SHARED = Path(os.environ.get("XNN_SHARED") or Path(__file__).resolve().parents[2] / "shared")
CIFAR10 = Path(os.environ.get("XNN_DATA") or "~/.cache/xnn").expanduser() / "cifar10.npz"
MODEL = SHARED / "models/mltk/image_classification.h5"
CALIBRATION = 500


def normalize(pixels: np.ndarray) -> np.ndarray:
    """What the model takes."""
    return (pixels.astype(np.float32) - 128) / 128


def tflite_bytes(model: Any, calibration: np.ndarray) -> bytes:
    """Full int8 by TensorFlow's converter, with a float signature."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[None]] for image in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return converter.convert()


def run_tflite(content: bytes, x: np.ndarray, resolver: str) -> np.ndarray:
    """The outputs of every sample by LiteRT's kernels of that resolver."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=getattr(OpResolverType, resolver), num_threads=1
    )
    batch = 100
    given, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    interpreter.resize_tensor_input(given, [batch, *x.shape[1:]])
    interpreter.allocate_tensors()
    outputs = []
    for start in range(0, len(x), batch):
        interpreter.set_tensor(given, x[start : start + batch])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(result))
    return np.concatenate(outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observer", nargs="+", choices=OBSERVERS, default=list(OBSERVERS))
    parser.add_argument("--images", type=int, default=10_000, help="how many of the test images (a multiple of 100)")
    options = parser.parse_args()
    import tf_keras

    with np.load(CIFAR10) as data:
        calibration = normalize(data["x_train"][:CALIBRATION])
        x, y = normalize(data["x_test"][: options.images]), data["y_test"][: options.images]
    model = tf_keras.models.load_model(MODEL, compile=False)

    def show(what: str, outputs: np.ndarray, size: int, seconds: float) -> None:
        accuracy = 100 * (outputs.argmax(axis=1) == y).mean()
        print(f"{what:38} {accuracy:7.2f} % {size:9,} bytes {seconds:7.1f} s", flush=True)

    print(f"{'':38} accuracy, file, time to convert")
    show("Keras", model.predict(x, batch_size=100, verbose=0), MODEL.stat().st_size, 0)
    result = converter.convert(model)
    show("xnn float32", runtime.load(result.bytes).predict(x, batch_size=100), len(result.bytes), 0)
    start = time.perf_counter()
    content = tflite_bytes(model, calibration)
    seconds = time.perf_counter() - start
    for resolver in ("BUILTIN_REF", "AUTO"):
        show(f"TFLite int8, {resolver}", run_tflite(content, x, resolver), len(content), seconds)
    for observer in options.observer:
        start = time.perf_counter()
        result = converter.convert(model, "int8", calibration, observer=observer)
        seconds = time.perf_counter() - start
        outputs = runtime.load(result.bytes).predict(x, batch_size=100)
        show(f"xnn int8, {observer}", outputs, len(result.bytes), seconds)


if __name__ == "__main__":
    main()

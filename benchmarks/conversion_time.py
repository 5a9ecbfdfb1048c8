"""How long the conversion of MobileNetV2's SavedModel takes, against TFLite's converter: in turns, by medians.

    python benchmarks/conversion_time.py [--keras tf_keras] [--runs 9]

Importing TensorFlow is in neither figure.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
from benchmarks import applications


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", choices=("keras", "tf_keras"), default="keras")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    keras = importlib.import_module(options.keras)
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        applications.build("MobileNetV2", keras).export(folder)
        ours, theirs = [], []
        for _ in range(options.runs + 1):  # the first turn warms both up
            ours.append(seconds(lambda: converter.convert(folder)))
            theirs.append(seconds(lambda: tf.lite.TFLiteConverter.from_saved_model(folder).convert()))
        a, b = statistics.median(ours[1:]), statistics.median(theirs[1:])
        stages = ", ".join(f"{name} {s:.2f}" for name, s in converter.convert(folder).report.seconds.items())
    print(f"MobileNetV2 from {options.keras}'s SavedModel, median of {options.runs}: xnn {a:.2f} s, TFLite {b:.2f} s")
    print(f"ratio {a / b:.2f}; first turn: xnn {ours[0]:.2f} s, TFLite {theirs[0]:.2f} s; xnn's stages: {stages}")


if __name__ == "__main__":
    main()

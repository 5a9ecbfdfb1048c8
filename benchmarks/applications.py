"""The 13 keras.applications through the converter: how far the converted files are from Keras, how large, how long it
takes.

    python benchmarks/applications.py [--keras tf_keras] [--only MobileNetV2 ...] [--size 96]

Weights are random but seeded, BatchNorm statistics come from a few training-mode batches, there is no final softmax.
The error is the largest difference over two images, in standard deviations of Keras's outputs; two images that give
about the same answer would hide errors, so how much the answers differ is shown beside it (of the largest output).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime

NAMES = """MobileNet MobileNetV2 MobileNetV3Small EfficientNetB0 EfficientNetV2B0 ResNet50 ResNet50V2 DenseNet121
InceptionV3
    Xception NASNetMobile VGG16 ConvNeXtTiny""".split()
DEFAULT_SIZES = {"InceptionV3": 299, "Xception": 299}
RESCALING = ("EfficientNet", "MobileNetV3", "ConvNeXt")  # these take pixels from 0 to 255
SEED = 7
BATCHES, BATCH_SIZE = 4, 4


class Figures(NamedTuple):
    """error: of the converted file, in standard deviations of Keras's outputs. seconds: of the conversion."""

    name: str
    source: str
    error: float
    difference: float
    bytes: int
    nodes: int
    seconds: float


def size_of(name: str) -> int:
    """The default height and width."""
    return DEFAULT_SIZES.get(name, 224)


def images(name: str, count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Smooth random images of various contrast, in the range that the net takes."""
    coarse = rng.normal(0, rng.uniform(0.2, 1.0, (count, 1, 1, 3)), (count, 8, 8, 3))
    positions = np.linspace(0, 7, size)
    low = np.minimum(positions.astype(int), 6)
    part = (positions - low)[:, None, None]
    rows = coarse[:, low] * (1 - part) + coarse[:, low + 1] * part
    part = part.transpose(1, 0, 2)
    smooth = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    x = np.clip(smooth + rng.normal(0, 0.1, smooth.shape), -1, 1)
    return ((x + 1) * 127.5 if name.startswith(RESCALING) else x).astype(np.float32)


def build(name: str, keras: Any, size: int | None = None) -> Any:
    """The net with seeded weights and BatchNorm statistics of its own activations."""
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    shape = None if size is None else (size, size, 3)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None, input_shape=shape)
    layers = list(model._flatten_layers())
    for layer in layers:
        if type(layer).__name__ == "LayerScale":  # begins at 1e-6, which would switch its block off
            layer.set_weights([rng.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()])
    norms = [layer for layer in layers if isinstance(layer, keras.layers.BatchNormalization)]
    for step in range(BATCHES if norms else 0):
        for layer in norms:
            layer.momentum = step / (step + 1)  # the mean over the batches so far
        model(images(name, BATCH_SIZE, size or size_of(name), rng), training=True)
    return model


def measure(name: str, source: str, converted: Any, model: Any, x: np.ndarray) -> Figures:
    """Convert a model object or a path, run both, compare."""
    start = time.perf_counter()
    result = converter.convert(converted)
    seconds = time.perf_counter() - start
    expected = np.asarray(model(x, training=False))
    ours = runtime.load(result.bytes)(x)
    error = float(np.abs(ours - expected).max() / expected.std())
    difference = float(np.abs(expected[0] - expected[1]).max() / np.abs(expected).max())
    return Figures(name, source, error, difference, len(result.bytes), result.report.nodes, seconds)


def figures(name: str, keras: Any, size: int | None = None, exported: bool = True) -> list[Figures]:
    """From the model object and, if `exported`, from its SavedModel."""
    model = build(name, keras, size)
    x = images(name, 2, size or size_of(name), np.random.default_rng(SEED + 1))
    measured = [measure(name, "object", model, model, x)]
    if exported:
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, **({"verbose": False} if keras.__name__ == "keras" else {}))
            measured.append(measure(name, "SavedModel", folder, model, x))
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keras", choices=("keras", "tf_keras"), default="keras")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--size", type=int, help="height and width of the images (default: each net's own)")
    options = parser.parse_args()
    keras = importlib.import_module(options.keras)
    print(f"{options.keras} {keras.__version__}")
    print(f"{'net':17} {'source':10} {'error/std':>9} {'differ':>6} {'bytes':>11} {'nodes':>5} {'seconds':>7}")
    for name in options.only:
        for f in figures(name, keras, options.size):
            sizes = f"{f.bytes:11,} {f.nodes:5} {f.seconds:7.2f}"
            print(f"{f.name:17} {f.source:10} {f.error:9.1e} {f.difference:6.2f} {sizes}", flush=True)
        keras.backend.clear_session()


if __name__ == "__main__":
    main()

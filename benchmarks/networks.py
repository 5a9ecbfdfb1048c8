"""The nets of the speed benchmarks as `.tflite` files, float32 and int8, made once and kept in a folder.

Weights are random but seeded, BatchNorm statistics and int8 ranges come from the net's own activations, so that no
layer is idle. Four are made here by TensorFlow's converter; the others are the trained files of the shared models.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("XNN_SHARED") or ROOT.parent / "shared")
CACHE = Path(os.environ.get("XNN_DATA") or "~/.cache/xnn").expanduser() / "networks"

IMAGE_NETS = {"SqueezeNet": 227, "MobileNetV1": 224, "MobileNetV2": 224, "ResNet50": 224}
SMALL_NETS = {
    "ResNet8": "mltk/image_classification.tflite",
    "DS-CNN": "mltk/keyword_spotting.tflite",
    "Autoencoder": "mltk/anomaly_detection.tflite",
}
DETECTOR = "ssd_mobilenetv2_oidv4/object_detection_ssd_mobilenetv2_oidv4_fp16.tflite"


def has(name: str, dtype: str) -> bool:
    """Whether there is such a net in this dtype: the trained files come in one only."""
    return name in IMAGE_NETS or dtype == ("float32" if name == "SSD-MobileNetV2" else "int8")


def path(name: str, dtype: str) -> Path:
    """The `.tflite` file of a net; dtype is "float32" or "int8". Raises FileNotFoundError for one that is not there."""
    if name in IMAGE_NETS:
        found = CACHE / f"{name}.{dtype}.tflite"
        if not found.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, __file__, name], check=True)  # TensorFlow stays out of this process
        return found
    found = SHARED / "models" / (DETECTOR if name == "SSD-MobileNetV2" else SMALL_NETS[name])
    if not found.exists():
        raise FileNotFoundError(f"{found}: the shared models are needed (set XNN_SHARED)")
    return found


def squeezenet(keras):
    """SqueezeNet 1.1 (F. Iandola et al., arXiv:1602.07360, and the authors' later table), without dropout and softmax.

    Weights are drawn so that activations keep their size from layer to layer, or all answers would be the same.
    """

    def convolution(filters, size, **options):
        return keras.layers.Conv2D(filters, size, activation="relu", kernel_initializer="he_normal", **options)

    inputs = keras.Input((227, 227, 3))
    x = convolution(64, 3, strides=2)(inputs)
    x = keras.layers.MaxPooling2D(3, 2)(x)
    for i, squeezed in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        x = convolution(squeezed, 1)(x)
        expanded = [convolution(4 * squeezed, 1)(x), convolution(4 * squeezed, 3, padding="same")(x)]
        x = keras.layers.Concatenate()(expanded)
        if i in (1, 3):
            x = keras.layers.MaxPooling2D(3, 2)(x)
    x = convolution(1000, 1)(x)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x), name="squeezenet")


def make(name: str) -> None:
    """Write the two files of one net (imports TensorFlow)."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import numpy as np
    import tensorflow as tf

    from benchmarks.applications import build, images

    size = IMAGE_NETS[name]
    keras.utils.set_random_seed(7)
    model = squeezenet(keras) if name == "SqueezeNet" else build({"MobileNetV1": "MobileNet"}.get(name, name), keras)
    samples = images(name, 32, size, np.random.default_rng(3))
    fixed = keras.Input((size, size, 3), batch_size=1)
    model = keras.Model(fixed, model(fixed))
    saved = CACHE / f"{name}.saved_model"
    model.export(saved, verbose=False)
    for dtype in ("float32", "int8"):
        convert = tf.lite.TFLiteConverter.from_saved_model(str(saved))
        if dtype == "int8":
            convert.optimizations = [tf.lite.Optimize.DEFAULT]
            convert.representative_dataset = lambda: ([x[None]] for x in samples)
            convert.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            convert.inference_input_type = convert.inference_output_type = tf.int8
        data = convert.convert()
        partial = CACHE / f"{name}.{dtype}.partial"
        partial.write_bytes(data)
        partial.replace(CACHE / f"{name}.{dtype}.tflite")
    shutil.rmtree(saved)


if __name__ == "__main__":
    make(sys.argv[1])

"""EfficientNet-Lite0 (ImageNet, trained) on photos: top-1 of Keras, xnn float32 and xnn int8.

    python benchmarks/efficientnet_lite0.py [--crops 16]

Photos are cropped as the model's authors evaluate it: the central square, 224/256 of the shorter side. int8 is
calibrated on random crops of the photos (seeded), `--crops` from each.
Exit code 1 where a top-1 differs from Keras's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime

SHARED = Path(os.environ.get("XNN_SHARED") or Path(__file__).resolve().parents[2] / "shared")
FOLDER = SHARED / "models/efficientnet_lite0"
SIZE = 224
CROP_PADDING = 32  # pixels of the scaled image that are cut off, as in EfficientNet's own preprocessing
SEED = 11


def normalize(image: Image.Image) -> np.ndarray:
    """An image as the model takes it: (224, 224, 3)."""
    pixels = np.asarray(image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BICUBIC), np.float32)
    return (pixels - 127) / 128


def central(photo: Image.Image) -> np.ndarray:
    side = round(min(photo.size) * SIZE / (SIZE + CROP_PADDING))
    left, top = (photo.width - side) // 2, (photo.height - side) // 2
    return normalize(photo.crop((left, top, left + side, top + side)))


def crops(photo: Image.Image, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random squares of at least half the shorter side, half of them mirrored."""
    result = []
    for _ in range(count):
        side = int(rng.integers(min(photo.size) // 2, min(photo.size) + 1))
        left, top = (int(rng.integers(0, length - side + 1)) for length in photo.size)
        crop = normalize(photo.crop((left, top, left + side, top + side)))
        result.append(crop[:, ::-1] if rng.random() < 0.5 else crop)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crops", type=int, default=16, help="calibration crops of each photo")
    options = parser.parse_args()
    import tf_keras

    model = tf_keras.models.load_model(FOLDER / "efficientnet_lite0.h5", compile=False)
    labels = json.loads((FOLDER / "imagenet1k_label_to_names.json").read_text())
    paths = sorted((SHARED / "data/photos").iterdir())
    photos = [Image.open(path) for path in paths]
    rng = np.random.default_rng(SEED)
    x = np.stack([central(photo) for photo in photos])
    calibration = np.stack([crop for photo in photos for crop in crops(photo, options.crops, rng)])

    expected = model.predict(x, verbose=0)
    outputs = {}
    for method in ("none", "int8"):
        start = time.perf_counter()
        result = converter.convert(model, method, calibration if method == "int8" else None)
        name = "float32" if method == "none" else method
        print(f"{name}: {len(result.bytes):,} bytes, converted in {time.perf_counter() - start:.1f} s")
        outputs[name] = runtime.load(result.bytes).predict(x)
    same = True
    for i, path in enumerate(paths):
        print(path.name)
        for name, found in {"Keras": expected, **outputs}.items():
            best = int(found[i].argmax())
            same &= best == expected[i].argmax()
            print(f"  {name:8} {found[i, best]:6.3f}  {labels[str(best)]}")
    print("top-1 is the same in all" if same else "top-1 DIFFERS")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

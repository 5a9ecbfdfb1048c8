"""Real `.tflite` files as `.xnn` files: are the outputs those of LiteRT's reference kernels, and how large are they?

    python benchmarks/tflite_parity.py [file.tflite ...] [--random 20] [--real 200]

Without files: all of ../shared/models. Each runs on random inputs and on real ones where there are any (CIFAR-10's test
images, photographs). Outputs of integer models must be equal to the bit; those of float models within 1e-5, or three
times the difference between LiteRT's reference kernels and XNNPACK if that is more, relative to the largest output.
Exit code 1 where one is not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime
from converter.integers import computes_integers
from converter.tables import table
from tests.support.litert_files import Session, relative_difference

SHARED = Path(os.environ.get("XNN_SHARED") or Path(__file__).resolve().parents[2] / "shared")
CIFAR10 = Path(os.environ.get("XNN_DATA") or "~/.cache/xnn").expanduser() / "cifar10.npz"
LEAST_TOLERANCE = 1e-5


@dataclass
class Comparison:
    """equal: inputs on which integers are equal to the bit, or floats within the tolerance. worst: the difference, and
    the tolerance, where floats came nearest to it.
    """

    random: int = 0
    real: int = 0
    equal: int = 0
    worst: tuple[float, float] = (0.0, LEAST_TOLERANCE)

    def add(self, difference: float, tolerance: float) -> None:
        self.equal += difference <= tolerance
        if difference / tolerance > self.worst[0] / self.worst[1]:
            self.worst = difference, tolerance


def compare(path: Path, model: runtime.Model, random: int, real: int) -> Comparison:
    content = path.read_bytes()
    reference, usual = Session(content), Session(content, "BUILTIN")
    integers = computes_integers(model.graph)
    rng = np.random.default_rng(20)
    inputs = [reference.draw(rng) for _ in range(random)]
    samples = list(_real_inputs(path, reference, real))
    result = Comparison(len(inputs), len(samples))
    for arrays in inputs + samples:
        ours = model(*arrays)
        ours = list(ours.values()) if isinstance(ours, dict) else [ours]
        expected = reference.run(arrays)
        same = all(a.dtype == b.dtype and a.shape == b.shape for a, b in zip(ours, expected, strict=True))
        if integers:
            result.equal += same and all(map(np.array_equal, ours, expected))
        else:
            tolerance = max(LEAST_TOLERANCE, 3 * relative_difference(usual.run(arrays), expected))
            result.add(relative_difference(ours, expected) if same else np.inf, tolerance)
    return result


def _real_inputs(path: Path, session: Session, count: int) -> Iterator[list[np.ndarray]]:
    """Images for the models that take them, prepared as each wants."""
    (detail,) = session.inputs
    _, *size = detail["shape"]
    if path.stem == "image_classification":
        if CIFAR10.is_file():
            with np.load(CIFAR10) as arrays:
                for image in arrays["x_test"][:count]:
                    yield [(image.astype(np.int16) - 128).astype(np.int8)[None]]
    elif len(size) == 3 and size[2] == 3:
        low, high = session.range_of(detail) or (-1.0, 1.0)
        for image in _photographs(size[0], size[1]):
            yield [(image.astype(np.float32) / 255 * (high - low) + low)[None]]
    elif path.stem.startswith("rock_paper_scissors"):
        for image in _photographs(size[0], size[1]):
            grey = image.mean(axis=2, dtype=np.float32)[None, :, :, None]
            yield [(grey - grey.mean()) / grey.std()]


def _photographs(height: int, width: int) -> Iterator[np.ndarray]:
    from PIL import Image

    for path in sorted((SHARED / "data/photos").iterdir()):
        yield np.asarray(Image.open(path).convert("RGB").resize((width, height)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--random", type=int, default=20, help="random inputs of each file")
    parser.add_argument("--real", type=int, default=200, help="real inputs of each file, at most")
    options = parser.parse_args()
    files = options.files or sorted((SHARED / "models").glob("*/*.tflite"))
    rows = [("file", "ops", "dtype", "equal", "inputs", "difference", "tolerance", ".tflite", ".xnn", "ratio")]
    failed = False
    for path in files:
        converted = converter.convert(path)
        model = runtime.load(converted.bytes)
        found = compare(path, model, options.random, options.real)
        count = found.random + found.real
        failed |= found.equal != count
        integers = computes_integers(model.graph)
        dtype = "int8" if integers else "float32"
        size, ours = path.stat().st_size, len(converted.bytes)
        rows.append(
            (
                path.name,
                str(len({node.op for node in model.graph.nodes})),
                dtype,
                "yes" if found.equal == count else f"no ({found.equal})",
                f"{found.random} random + {found.real} real",
                *("0" if integers else f"{number:.2g}" for number in found.worst),
                str(size),
                str(ours),
                f"{ours / size:.2f}",
            )
        )
        print(table(rows), end="\n\n", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

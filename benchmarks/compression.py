"""Bytes against accuracy: xnn's recipes on the fixed base models of `../shared/zoo`.

    python benchmarks/compression.py --quick                      # one small net, under five minutes
    python benchmarks/compression.py --net lenet_300_100 --recipe xqueeze deep-compression --seeds 3
    python benchmarks/compression.py --table                      # benchmarks/COMPRESSION.md from what has been run

Each run compresses to a size, trains on the training images less those that are held out, and chooses by the latter;
the test images are run once, through the `.xnn` file. What is run is added to `benchmarks/compression.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import runtime
from benchmarks.compression_nets import NETS, Net, augmented, load_base, load_data
from benchmarks.compression_table import table
from schema.version import __version__

HERE = Path(__file__).resolve().parent
RESULTS, TABLE = HERE / "compression.json", HERE / "COMPRESSION.md"
BATCH = 128
QUICK = ("lenet_300_100_mnist10k", 16_600, 30)  # net, bytes, epochs


@dataclass(frozen=True)
class Run:
    """One file. Accuracies are shares of the validation and the whole test images, by the file."""

    net: str
    recipe: str
    size: int
    seed: int
    epochs: int
    bytes: int
    base_bytes: int
    base_test: float
    validation: float
    test: float
    seconds: float
    date: str
    versions: str


def accuracy(xnn: bytes, x: np.ndarray, y: np.ndarray) -> float:
    """Of the file, by the engine."""
    outputs = runtime.load(xnn).predict(x, batch_size=500)
    return float(np.mean(np.argmax(outputs, -1) == y))


def recipe_for(net: Net, name: str) -> Any:
    """The named recipe, training at the net's learning rate, with a second level where a file missed its size."""
    from xnn_tf.compression.recipes import RECIPES

    stages = [
        replace(stage, learning_rate=net.learning_rate) if hasattr(stage, "learning_rate") else stage
        for stage in RECIPES[name].stages
    ]
    return replace(RECIPES[name], stages=stages, levels=2)


def run(net: Net, recipe: str, size: int, seed: int, epochs: int) -> Run:
    """Compresses the net's base model to a file of at most `size` bytes, and measures it."""
    import tensorflow as tf
    import tf_keras

    import converter
    import xnn_tf

    tf_keras.utils.set_random_seed(seed)
    train, validation, test = load_data(net)
    base = load_base(net, tf_keras, recipe)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = xnn_tf.compress(
            base,
            augmented(net, train, BATCH, seed),
            validation,
            target_size=size,
            recipe=recipe_for(net, recipe),
            epochs=epochs,
            folder=folder,
            seed=seed,
        )
    return Run(
        net.name,
        recipe,
        size,
        seed,
        epochs,
        bytes=len(result.xnn),
        base_bytes=result.base_bytes,
        base_test=accuracy(converter.convert(base).bytes, *test),
        validation=accuracy(result.xnn, *validation),
        test=accuracy(result.xnn, *test),
        seconds=time.perf_counter() - start,
        date=time.strftime("%Y-%m-%d"),
        versions=f"Python {platform.python_version()}, TensorFlow {tf.__version__}, xnn {__version__}",
    )


def read_results() -> list[Run]:
    """What has been run."""
    return [Run(**row) for row in json.loads(RESULTS.read_text())] if RESULTS.exists() else []


def keep(made: Run) -> None:
    """Adds a run to what has been run, in the place of an earlier one of the same kind."""

    def kind(row: Run) -> tuple[str, str, int, int]:
        return row.net, row.recipe, row.size, row.seed

    rows = sorted([row for row in read_results() if kind(row) != kind(made)] + [made], key=kind)
    RESULTS.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--recipe", nargs="+", choices=("xqueeze", "deep-compression"), default=["xqueeze"])
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each, with seeds 0, 1, …")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", help="bytes; default: those of each net's curve")
    parser.add_argument("--quick", action="store_true", help="one small net, few epochs; nothing is kept")
    parser.add_argument("--table", action="store_true", help="only write COMPRESSION.md")
    options = parser.parse_args()
    if options.quick:
        name, size, epochs = QUICK
        print(table([run(NETS[name], "xqueeze", size, 0, epochs)]))
        return
    if not options.table:
        for net in (NETS[name] for name in options.net):
            for recipe in options.recipe:
                for size in options.sizes or net.sizes[recipe]:
                    for seed in range(options.first_seed, options.first_seed + options.seeds):
                        made = run(net, recipe, size, seed, net.epochs[recipe])
                        print(table([made]), flush=True)
                        keep(made)
    TABLE.write_text(table(read_results()))


if __name__ == "__main__":
    main()

"""How fast entropy-coded weights are decoded, on one core: by the engine's kernel and by numpy alone.

    python benchmarks/decoding.py [--count 1000000] [--runs 15]

Symbols a second of whole streams (`schema.coding.rans.decode`: table, lanes, symbols), the best of the runs, and what
the streams take beside their zero-order entropy. Then reading a file of 3 MB, 24 layers of sparse 4-bit and dense 8-bit
weights, from its bytes to constants.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import schema
from runtime.decoding import decode_lanes
from schema import Graph, Model, Node, Tensor
from schema.coding import rans
from schema.ops import attributes as a

FLOAT = np.dtype(np.float32)
DECODERS = {"kernel": decode_lanes, "numpy": rans.decode_lanes}


def best(run: Callable[[], object], runs: int) -> float:
    """Seconds."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def streams(count: int) -> dict[str, np.ndarray]:
    """Symbols as weights have them."""
    rng = np.random.default_rng(1)
    normal = rng.normal(size=count)
    few = np.clip(np.rint(normal * 2), -7, 7)
    return {
        "int8, normal": np.clip(np.rint(normal * 30) + 128, 0, 255).astype(np.uint8),
        "int8, uniform": rng.integers(0, 256, count).astype(np.uint8),
        "4 bits, normal": (few + 8).astype(np.uint8),
        "4 bits, 90 % zeros": (np.where(rng.random(count) < 0.9, 0, few) + 8).astype(np.uint8),
        "positions, 8 to a symbol": np.packbits(rng.random(8 * count) < 0.1),
    }


def entropy(symbols: np.ndarray) -> float:
    """In bytes."""
    counts = np.bincount(symbols)
    counts = counts[counts > 0]
    return float(counts @ -np.log2(counts / counts.sum())) / 8


def network() -> bytes:
    """A file of about 3 MB."""
    rng = np.random.default_rng(2)
    x = Tensor("x", FLOAT, (None, 512))
    nodes, last = [], x
    for i in range(24):
        normal = rng.normal(size=(512, 512))
        dense = np.clip(np.rint(normal * 30), -127, 127)
        sparse = np.where(rng.random((512, 512)) < 0.8, 0, np.clip(np.rint(normal * 3), -7, 7))
        y = Tensor("y", FLOAT)
        kernel = Tensor.from_array("w", (dense if i % 2 else sparse).astype(np.float32))
        nodes.append(Node("FULLY_CONNECTED", [last, kernel], [y], a.FullyConnectedAttributes(), f"dense{i}"))
        last = y
    return schema.write(Model([Graph(nodes, [x], ["x"], [last], ["y"])]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="symbols of a stream")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    print(f"{'symbols':26}{'bytes':>9}{'x entropy':>11}{'kernel M/s':>12}{'numpy M/s':>11}")
    for name, symbols in streams(arguments.count).items():
        data = rans.encode(symbols)
        if data is None:
            raise SystemExit(f"{arguments.count} symbols are more than a stream holds")
        rates = []
        for decoder in DECODERS.values():
            rans.use(decoder)
            assert np.array_equal(rans.decode(data, len(symbols)), symbols)
            rates.append(len(symbols) / 1e6 / best(partial(rans.decode, data, len(symbols)), arguments.runs))
        print(f"{name:26}{len(data):9}{len(data) / entropy(symbols):11.4f}{rates[0]:12.0f}{rates[1]:11.1f}")
    file = network()
    for name, decoder in DECODERS.items():
        rans.use(decoder)
        taken = best(partial(schema.read, file), 3)
        print(f"reading a file of {len(file)} bytes, by {name}: {1e3 * taken:.0f} ms")


if __name__ == "__main__":
    main()

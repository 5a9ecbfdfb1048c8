"""TFLITE_DOUBLE and FP32_ROUND_EVEN on whole int8 nets: time, and how far the outputs are from float32's.

    python benchmarks/requantization.py [--calls 60]

The nets are the int8 `.tflite` files of `benchmarks/engine.py`, each converted once and run with either rule, in turns.
Distances are of the dequantized outputs from those of the float32 file, as signal to noise in dB, over 8 random images.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import converter
import runtime
import schema
from benchmarks import networks
from benchmarks.applications import images
from benchmarks.report import geometric_mean
from schema.fixedpoint import dequantize, quantize

RULES = ("TFLITE_DOUBLE", "FP32_ROUND_EVEN")


def loaded(net: str) -> dict[str, runtime.Model]:
    """The int8 net with either rule."""
    model = schema.read(converter.convert(networks.path(net, "int8")).bytes)
    found = {}
    for rule in RULES:
        model.requantization = rule
        found[rule] = runtime.load(schema.write(model), threads=1)
    return found


def milliseconds(models: dict[str, runtime.Model], x: np.ndarray, calls: int) -> dict[str, float]:
    times: dict[str, list[float]] = {rule: [] for rule in models}
    for turn in range(-(-calls // 6)):
        for rule in RULES[turn % 2 :] + RULES[: turn % 2]:
            models[rule](x)
            for _ in range(6):
                start = time.perf_counter()
                models[rule](x)
                times[rule].append(time.perf_counter() - start)
    return {rule: 1e3 * statistics.median(taken) for rule, taken in times.items()}


def signal_to_noise(found: np.ndarray, expected: np.ndarray) -> float:
    """In dB."""
    return float(10 * np.log10(np.sum(expected**2) / np.sum((found - expected) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=60)
    options = parser.parse_args()
    print(f"{'net':12} {'double ms':>9} {'even ms':>9} {'ratio':>6} {'double dB':>9} {'even dB':>9}")
    ratios = []
    for net, size in networks.IMAGE_NETS.items():
        x = images(net, 8, size, np.random.default_rng(5))
        expected = runtime.load(converter.convert(networks.path(net, "float32")).bytes)
        wanted = np.concatenate([expected(sample[None]) for sample in x])
        models = loaded(net)
        given, result = models[RULES[0]].graph.inputs[0], models[RULES[0]].graph.outputs[0]
        assert given.quantization is not None
        integers = quantize(x, given.quantization, given.dtype)
        noise = {}
        for rule, model in models.items():
            outputs = np.concatenate([model(sample[None]) for sample in integers])
            assert result.quantization is not None
            noise[rule] = signal_to_noise(dequantize(outputs, result.quantization), wanted)
        taken = milliseconds(models, integers[:1], options.calls)
        double, even = (taken[rule] for rule in RULES)
        ratios.append(even / double)
        print(
            f"{net:12} {double:9.3f} {even:9.3f} {ratios[-1]:6.3f} {noise[RULES[0]]:9.2f} {noise[RULES[1]]:9.2f}",
            flush=True,
        )
    print(f"geometric mean of even / double: {geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    main()

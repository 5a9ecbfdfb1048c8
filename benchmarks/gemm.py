"""How fast an int8 matrix product is within a plan, its epilogue included: requantization by channels, bias, clamping.

    python benchmarks/gemm.py [--op conv | dense] [--rows 768] [--depth 256] [--calls 300]

Two plans of 1x1 convolutions, or of dense layers (which round once where convolutions do twice), that follow each
other, each with weights of its own, run in turns. The difference of their medians over the difference of their layers
is the time of one: without what a call costs. Several rounds are told apart, since the machine's speed moves.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import runtime
import schema
from runtime.native.target import host_target, isa_tiers
from schema import Graph, Model, Node, Quantization, Tensor
from schema.ops import attributes as a

LAYERS = (4, 20)
ROUNDS = 9
IN, OUT = 0.05, 0.02  # scales: of activations and of weights


def shape_of(op: str, rows: int, depth: int) -> tuple[int, ...]:
    return (1, 1, rows, depth) if op == "conv" else (rows, depth)


def plan_of(op: str, layers: int, rows: int, depth: int) -> runtime.Model:
    rng = np.random.default_rng(0)
    shape = shape_of(op, rows, depth)
    activation = Quantization(IN, 3)
    tensors = [Tensor("x", np.int8, shape, activation)]
    nodes = []
    for index in range(layers):
        values = rng.integers(-127, 128, (depth, depth)).astype(np.int8)
        scales = rng.uniform(0.5, 1.0, depth).astype(np.float32) * OUT / np.sqrt(depth)
        if op == "conv":
            values = values.reshape(depth, 1, 1, depth)
        weights = Tensor.from_array(f"w{index}", values, Quantization(scales, axis=0))
        sums = rng.integers(-9999, 9999, depth).astype(np.int32)
        bias = Tensor.from_array(f"b{index}", sums, Quantization(IN * scales, axis=0))
        tensors.append(Tensor(f"y{index}", np.int8, shape, activation))
        attributes = a.Conv2DAttributes(padding="VALID") if op == "conv" else a.FullyConnectedAttributes()
        name = "CONV_2D" if op == "conv" else "FULLY_CONNECTED"
        nodes.append(Node(name, [tensors[-2], weights, bias], [tensors[-1]], attributes))
    graph = Graph(nodes, [tensors[0]], ["x"], [tensors[-1]], ["y"])
    return runtime.load(schema.write(Model([graph])), threads=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", choices=["conv", "dense"], default="dense")
    parser.add_argument("--rows", type=int, default=768)
    parser.add_argument("--depth", type=int, default=256)
    parser.add_argument("--calls", type=int, default=300, help="of each plan, in each round")
    options = parser.parse_args()
    few, many = (plan_of(options.op, count, options.rows, options.depth) for count in LAYERS)
    x = np.random.default_rng(1).integers(-128, 128, shape_of(options.op, options.rows, options.depth)).astype(np.int8)
    speeds = []
    for _ in range(ROUNDS):
        taken: dict[runtime.Model, list[float]] = {few: [], many: []}
        for _ in range(options.calls):
            for model, times in taken.items():
                start = time.perf_counter()
                model(x)
                times.append(time.perf_counter() - start)
        one = (statistics.median(taken[many]) - statistics.median(taken[few])) / (LAYERS[1] - LAYERS[0])
        speeds.append(options.rows * options.depth**2 / one / 1e9)
    shape = f"{options.op} {options.rows} x {options.depth} x {options.depth}"
    print(
        f"{shape}, kernels for {isa_tiers(host_target())[0]}: median {statistics.median(speeds):.0f} GMAC/s, "
        f"{min(speeds):.0f} to {max(speeds):.0f} in {ROUNDS} rounds"
    )


if __name__ == "__main__":
    main()

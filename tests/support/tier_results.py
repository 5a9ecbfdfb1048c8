"""Results of kernels of all kinds in a process of its own: `python tier_results.py OUT.npz` saves them by name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.native.target import host_target
from runtime.steps import HostStep
from schema import Node, Quantization, Tensor
from schema.ops.attributes import (
    ArithmeticAttributes,
    Conv2DAttributes,
    FullyConnectedAttributes,
    Pool2DAttributes,
)
from tests.support.engine import graph_of, run
from tests.support.operands import float_operands, int8_operands

RULES = ("TFLITE_DOUBLE", "FP32_ROUND_EVEN")
MAKERS = {"float32": float_operands, "int8": int8_operands}

# name -> (input, weights (out, height, width, in), stride)
CONVOLUTIONS = {
    "1x1": ((1, 7, 9, 40), (70, 1, 1, 40), 1),
    "1x1 deep": ((1, 12, 12, 256), (64, 1, 1, 256), 1),
    "3x3": ((1, 9, 8, 19), (37, 3, 3, 19), 1),
    "3x3 strided": ((2, 9, 8, 32), (64, 3, 3, 32), 2),
    "7x7 of 3 channels": ((1, 30, 31, 3), (64, 7, 7, 3), 2),
    "3x3 of 3 channels": ((1, 32, 32, 3), (32, 3, 3, 3), 2),
}
# name -> (input, window, stride)
DEPTHWISE = {
    "3x3": ((1, 9, 8, 70), 3, 1),
    "3x3 strided": ((1, 14, 14, 64), 3, 2),
    "5x5": ((1, 9, 8, 19), 5, 1),
    "5x5 strided": ((1, 14, 13, 96), 5, 2),
}


def _native(node: Node, inputs: Sequence[Tensor], arrays: Sequence[np.ndarray], rule: str = RULES[0]) -> np.ndarray:
    outputs, steps = run(graph_of([node], inputs, node.outputs), arrays, 1, rule)
    assert not any(isinstance(step, HostStep) for step in steps), node
    return outputs[0]


def linear(rng: np.random.Generator, dtype: str, rules: Sequence[str]) -> dict[str, np.ndarray]:
    """Convolutions, depthwise convolutions and dense layers of one dtype."""
    results, make = {}, MAKERS[dtype]

    def add(name: str, op: str, attributes: Any, operands: tuple) -> None:
        x, input_, constants, y = operands
        for rule in rules:
            results[f"{name} {dtype} {rule}"] = _native(
                Node(op, [input_, *constants], [y], attributes), [input_], [x], rule
            )

    for name, (x, weights, stride) in CONVOLUTIONS.items():
        extra = {"depth": int(np.prod(weights[1:]))} if dtype == "int8" else {}
        attributes = Conv2DAttributes(stride, stride, 1, 1, "SAME", activation="RELU")
        add(f"conv {name}", "CONV_2D", attributes, make(rng, x, weights, weights[0], True, **extra))
    for name, (x, window, stride) in DEPTHWISE.items():
        extra = {"axis": 3, "depth": window**2} if dtype == "int8" else {}
        operands = make(rng, x, (1, window, window, x[3]), x[3], True, **extra)
        add(f"depthwise {name}", "DEPTHWISE_CONV_2D", Conv2DAttributes(stride, stride, padding="SAME"), operands)
    for batch in (1, 37):
        extra = {"depth": 100} if dtype == "int8" else {}
        operands = make(rng, (batch, 100), (33, 100), 33, True, **extra)
        add(f"dense of {batch}", "FULLY_CONNECTED", FullyConnectedAttributes(), operands)
    return results


def others(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """int8 ADD with two scales, and MAX_POOL_2D."""
    shape, scale = (1, 9, 8, 70), Quantization(0.05, 3)
    x, z = (rng.integers(-128, 128, shape, dtype=np.int8) for _ in range(2))
    a, b = Tensor("a", np.int8, shape, scale), Tensor("b", np.int8, shape, Quantization(0.03, -7))
    add = Node("ADD", [a, b], [Tensor("y", np.int8, None, Quantization(0.07, -1))], ArithmeticAttributes())
    results = {f"add int8 {rule}": _native(add, [a, b], [x, z], rule) for rule in RULES}
    pool = Node("MAX_POOL_2D", [a], [Tensor("y", np.int8, None, scale)], Pool2DAttributes(3, 3, 2, 2, "SAME"))
    return results | {"max pool int8": _native(pool, [a], [x])}


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    results = linear(rng, "int8", RULES) | others(rng) | linear(rng, "float32", RULES[:1])
    np.savez(path, features=np.array(host_target().features), **results)


if __name__ == "__main__":
    main(sys.argv[1])

"""Whole `.tflite` files run by LiteRT, and inputs to run them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


class Session:
    """One file on one of LiteRT's sets of kernels: "BUILTIN_REF", or "BUILTIN" with XNNPACK."""

    def __init__(self, content: bytes, resolver: str = "BUILTIN_REF"):
        kernels = getattr(OpResolverType, resolver)
        self.interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels, num_threads=1)
        self.interpreter.allocate_tensors()
        self.inputs: list[dict[str, Any]] = self.interpreter.get_input_details()
        self.outputs: list[dict[str, Any]] = self.interpreter.get_output_details()

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        for detail, array in zip(self.inputs, arrays, strict=True):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(detail["index"]) for detail in self.outputs]

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Random inputs: all of an integer dtype's numbers; floats of a random size around a random mean."""
        return [_draw(rng, detail["dtype"], tuple(detail["shape"])) for detail in self.inputs]


def _draw(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.normal(rng.uniform(-1, 1), rng.uniform(0.1, 2), shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def relative_difference(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The largest difference, relative to the largest magnitude of the output that it is in."""
    differences = [0.0]
    for x, y in zip(a, b, strict=True):
        largest = max(float(np.abs(y.astype(np.float64)).max(initial=0)), float(np.finfo(np.float32).tiny))
        differences.append(float(np.abs(x.astype(np.float64) - y).max(initial=0)) / largest)
    return max(differences)

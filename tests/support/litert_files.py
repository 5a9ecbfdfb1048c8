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
        """Random inputs: all of an integer dtype's numbers; floats around a random mean, as far apart as is random,
        within the range that the file quantizes them to, if it does.
        """
        return [self._draw(rng, detail) for detail in self.inputs]

    def _draw(self, rng: np.random.Generator, detail: dict[str, Any]) -> np.ndarray:
        dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
        if dtype.kind != "f":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        low, high = self.range_of(detail) or (-3.0, 3.0)
        half = (high - low) / 2 * 10 ** rng.uniform(-2.5, 0)
        mean = rng.uniform(low + half, high - half) * 10 ** rng.uniform(-2, 0)
        return rng.uniform(mean - half, mean + half, shape).astype(dtype)

    def range_of(self, detail: dict[str, Any]) -> tuple[float, float] | None:
        """What a float input is quantized to by the QUANTIZE that reads it, None where there is none."""
        tensors = {tensor["index"]: tensor for tensor in self.interpreter.get_tensor_details()}
        for operator in self.interpreter._get_ops_details():
            if operator["op_name"] == "QUANTIZE" and detail["index"] in operator["inputs"]:
                scale, zero_point = tensors[operator["outputs"][0]]["quantization"]
                return (-128 - zero_point) * scale, (127 - zero_point) * scale
        return None


def relative_difference(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The largest difference, relative to the largest magnitude of the output that it is in."""
    differences = [0.0]
    for x, y in zip(a, b, strict=True):
        largest = max(float(np.abs(y.astype(np.float64)).max(initial=0)), float(np.finfo(np.float32).tiny))
        differences.append(float(np.abs(x.astype(np.float64) - y).max(initial=0)) / largest)
    return max(differences)

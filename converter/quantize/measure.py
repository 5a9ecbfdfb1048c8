"""How near a quantized graph's outputs are to those of the float graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from converter.quantize.calibration import Batch
from converter.quantize.execution import Execution
from converter.quantize.fidelity import Fidelity
from converter.quantize.matching import CONVERSIONS
from schema.fixedpoint import dequantize, quantize
from schema.graph import Graph, Node, Tensor


@dataclass(frozen=True)
class Noise:
    """Noise to signal ratio of all outputs together, float64: what each sample adds to it."""

    samples: np.ndarray

    @property
    def snr(self) -> float:
        """In dB; infinite where nothing differs."""
        total = float(self.samples.sum())
        return -10 * math.log10(total) if total else math.inf

    def gain_over(self, other: Noise) -> tuple[float, float]:
        """(by how much the SNR is better in dB, the standard error of that).

        Both are of the same samples, and an error that some few of them decide says little: of ln(sum a / sum b) the
        variance is about sum (a / sum a - b / sum b)^2.
        """
        if not self.samples.sum() or not other.samples.sum():
            return (0.0 if self.snr == other.snr else self.snr - other.snr), 0.0
        a, b = other.samples, self.samples
        error = math.sqrt(np.square(a / a.sum() - b / b.sum()).sum())
        return self.snr - other.snr, 10 / math.log(10) * error


class Reference:
    """What a float graph computes for some batches, which others are measured against.

    scores: measure what goes into a softmax at the end, without what it ignores, instead of what comes out. Numbers
    that it makes small hide their errors, and a few samples that it is undecided about outweigh all others.
    """

    def __init__(self, graph: Graph, batches: Sequence[Batch], scores: bool = False):
        self._batches = batches
        self._scores = scores
        self._names = list(graph.output_names)
        self._expected = list(self._run(graph))

    def fidelities(self, graph: Graph) -> dict[str, Fidelity]:
        """Of each output of real numbers of a graph with the same inputs, in float32 or quantized, by name."""
        found = {name: Fidelity() for name in self._real_outputs()}
        for expected, arrays in zip(self._expected, self._run(graph), strict=True):
            for name, real, array in zip(self._names, expected, arrays, strict=True):
                if name in found:
                    found[name].add(real, array)
        return found

    def noise(self, graph: Graph) -> Noise:
        """Of a graph with the same inputs, the mean over outputs. Batches are samples where outputs have none."""
        names = self._real_outputs()
        signal = dict.fromkeys(names, 0.0)
        noise: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for batch, expected, arrays in zip(self._batches, self._expected, self._run(graph), strict=True):
            pairs = {n: (x, y) for n, x, y in zip(self._names, expected, arrays, strict=True) if n in signal}
            cut = _has_samples(batch, [x for x, _ in pairs.values()])
            for name, (real, array) in pairs.items():
                finite = np.isfinite(real)
                x, y = (np.where(finite, values, 0).astype(np.float64) for values in (real, array))
                signal[name] += float(np.square(x).sum())
                squares = np.square(y - x)
                noise[name].append(squares.reshape(len(x), -1).sum(axis=1) if cut else squares.sum().reshape(1))
        parts = [np.concatenate(noise[name]) / (signal[name] or 1.0) for name in names]
        return Noise(np.mean(parts, axis=0) if parts else np.zeros(1))

    def _real_outputs(self) -> list[str]:
        first = zip(self._names, self._expected[0], strict=True)
        return [name for name, array in first if array.dtype.kind == "f"]

    def _run(self, graph: Graph) -> Iterator[list[np.ndarray]]:
        ends = [_end(graph, tensor) if self._scores else (tensor, None) for tensor in graph.outputs]
        execution = Execution(graph, list(dict.fromkeys(tensor for tensor, _ in ends)))
        for batch in self._batches:
            values = dict(zip(execution.tensors, execution(as_inputs(graph, batch)), strict=True))
            found = []
            for tensor, softmax in ends:
                array = values[tensor]
                real = array if tensor.quantization is None else dequantize(array, tensor.quantization)
                found.append(real if softmax is None else real - real.mean(axis=softmax.attributes.axis, keepdims=True))
            yield found


def as_inputs(graph: Graph, batch: Batch) -> Batch:
    """A batch of a float graph's inputs as a quantized graph takes them."""
    return [
        array if tensor.quantization is None else quantize(array, tensor.quantization, tensor.dtype)
        for tensor, array in zip(graph.inputs, batch, strict=True)
    ]


def _end(graph: Graph, output: Tensor) -> tuple[Tensor, Node | None]:
    """(what goes into the softmax that computes an output, the softmax); other outputs are their own."""
    producer = {tensor: node for node in graph.nodes for tensor in node.outputs}
    tensor = output
    while tensor in producer and producer[tensor].op in CONVERSIONS:
        tensor = producer[tensor].inputs[0]
    node = producer.get(tensor)
    return (node.inputs[0], node) if node is not None and node.op == "SOFTMAX" else (output, None)


def _has_samples(batch: Batch, outputs: Sequence[np.ndarray]) -> bool:
    count = len(batch[0]) if batch and batch[0].ndim else 0
    return count > 0 and all(array.ndim and len(array) == count for array in outputs)

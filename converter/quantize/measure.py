"""How near a quantized graph's outputs are to those of the float graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from converter.quantize.calibration import Batch
from converter.quantize.execution import Execution
from converter.quantize.fidelity import Fidelity
from schema.fixedpoint import dequantize, quantize
from schema.graph import Graph


class Reference:
    """The outputs of a float graph for some batches, which others are measured against."""

    def __init__(self, graph: Graph, batches: Sequence[Batch]):
        self._batches = batches
        self._names = list(graph.output_names)
        self._expected = list(_outputs(graph, batches))

    def fidelities(self, graph: Graph) -> dict[str, Fidelity]:
        """Of each output of real numbers of a graph with the same inputs, in float32 or quantized, by name."""
        first = zip(self._names, self._expected[0], strict=True)
        found = {name: Fidelity() for name, array in first if array.dtype.kind == "f"}
        for expected, arrays in zip(self._expected, _outputs(graph, self._batches), strict=True):
            for name, real, array in zip(self._names, expected, arrays, strict=True):
                if name in found:
                    found[name].add(real, array)
        return found

    def snr(self, graph: Graph) -> float:
        """In dB, of the output that is worst; infinite where no output is a real number."""
        return min((fidelity.snr for fidelity in self.fidelities(graph).values()), default=float("inf"))


def as_inputs(graph: Graph, batch: Batch) -> Batch:
    """A batch of a float graph's inputs as a quantized graph takes them."""
    return [
        array if tensor.quantization is None else quantize(array, tensor.quantization, tensor.dtype)
        for tensor, array in zip(graph.inputs, batch, strict=True)
    ]


def _outputs(graph: Graph, batches: Sequence[Batch]) -> Iterator[list[np.ndarray]]:
    execution = Execution(graph, graph.outputs)
    for batch in batches:
        arrays = execution(as_inputs(graph, batch))
        yield [
            array if tensor.quantization is None else dequantize(array, tensor.quantization)
            for tensor, array in zip(graph.outputs, arrays, strict=True)
        ]

"""Quantization with equalization and bias correction, where they help.

Calibration data is cut in two. What is fitted to one half is judged by the other, by the noise of the outputs; what is
kept is then fitted to all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from converter.quantize import equalize
from converter.quantize.bias_correction import correct, correctable, float_means
from converter.quantize.calibration import Batch
from converter.quantize.equalize import Equalization
from converter.quantize.layers import layer_name, wanted
from converter.quantize.measure import Noise, Reference
from converter.quantize.options import Options
from converter.quantize.placement import place
from converter.quantize.report import Report
from converter.quantize.samples import first, halves, hold
from converter.quantize.selection import Chosen, choose
from converter.rewriter import copy
from schema import inference
from schema.graph import Graph

SAMPLES = 256
"""How many the means are measured on. Each has many positions, and what later layers read is held for all of them."""

Quantize = Callable[[Graph, Options, Sequence[Batch]], Report]
"""Quantization of a graph in place, without what is done here."""


def refined(graph: Graph, options: Options, calibration: Any, quantize: Quantize) -> Report:
    """Quantize in place as `quantize` does, after the equalization and with the bias correction that options ask for.

    The report's notes say what was kept. Raises what `quantize` raises, and leaves the graph as it was then.
    """
    inference.annotate(graph)
    batches = hold(graph, calibration)
    refinement = _Refinement(graph, options, batches, quantize)
    result = copy(graph)
    notes = []
    if options.equalize:
        kept, note = refinement.equalizations()
        equalize.apply(result, kept)
        notes.append(note)
    layers: list[int] = []
    if options.bias_correction:
        layers, note = refinement.corrections(result)
        notes.append(note)
    real = copy(result)
    report = quantize(result, replace(options, equalize=False, bias_correction=False), batches)
    _correct(real, result, layers, batches)
    graph.nodes, graph.inputs, graph.outputs = result.nodes, result.inputs, result.outputs
    return replace(report, notes=[*report.notes, *notes])


class _Refinement:
    def __init__(self, graph: Graph, options: Options, batches: list[Batch], quantize: Quantize):
        self._graph = graph
        self._options = replace(options, equalize=False, bias_correction=False, io_dtype=None)
        self._corrects = options.bias_correction
        self._batches = batches
        self._quantize = quantize
        self._fit, self._judge = halves(graph, batches)
        self._reference = Reference(graph, self._judge, scores=True)

    def equalizations(self) -> tuple[list[Equalization], str]:
        """What to equalize, fitted to all data, and what to say about it."""
        placement = place(self._graph, wanted=wanted(self._graph, self._options))
        planned = equalize.plan(placement, self._fit)
        chosen = choose(planned, self._equalized)
        writers = {equalization.writer for equalization in chosen.kept}
        final = [e for e in equalize.plan(placement, self._batches) if e.writer in writers] if writers else []
        return final, self._note("equalization", chosen, [e.name for e in chosen.kept], len(planned))

    def corrections(self, real: Graph) -> tuple[list[int], str]:
        """Positions of the float graph's nodes whose bias to correct, and what to say about it."""
        quantized = copy(real)
        self._quantize(quantized, self._options, self._fit)
        position = {node: number for number, node in enumerate(real.nodes)}
        candidates = [position[node] for node in correctable(real, quantized)]

        def measure(layers: Sequence[int]) -> Noise:
            corrected = copy(quantized)
            _correct(real, corrected, layers, self._fit)
            return self._reference.noise(corrected)

        chosen = choose(candidates, measure)
        names = list(dict.fromkeys(layer_name(real.nodes[i]) for i in chosen.kept))
        return chosen.kept, self._note("bias correction", chosen, names, len(candidates))

    def _equalized(self, equalizations: Sequence[Equalization]) -> Noise:
        """With all biases corrected where they will be: what that makes up for is no reason to equalize."""
        graph = copy(self._graph)
        equalize.apply(graph, equalizations)
        real = copy(graph)
        self._quantize(graph, self._options, self._fit)
        if self._corrects:
            _correct(real, graph, range(len(real.nodes)), self._fit)
        return self._reference.noise(graph)

    def _note(self, what: str, chosen: Chosen, names: Sequence[str], count: int) -> str:
        judged = "on the same data" if self._fit is self._judge else "on the other half of the data"
        if not count:
            return f"{what}: nothing to do"
        if not chosen.kept:
            return f"{what}: not kept, {chosen.before.snr:.1f} dB would become {chosen.together.snr:.1f} {judged}"
        kept = f"kept for {len(chosen.kept)} of {count}: {', '.join(names)}"
        return f"{what}: {chosen.before.snr:.1f} dB became {chosen.after.snr:.1f} {judged}; {kept}"


def _correct(real: Graph, quantized: Graph, layers: Sequence[int], batches: Sequence[Batch]) -> None:
    """Correct the biases of the quantized forms of the float nodes at these positions."""
    batches = first(batches, SAMPLES)
    forms = correctable(real, quantized)
    nodes = [real.nodes[i] for i in layers if real.nodes[i] in forms]
    means = float_means(real, nodes, batches)
    correct(quantized, batches, {forms[node]: means[node] for node in nodes})

"""Methods that change what is stored and not what is computed: "float16" and "int8-weights"."""

from __future__ import annotations

from typing import Any

from converter.quantize.calibration import Batches
from converter.quantize.float16 import store_float16
from converter.quantize.layers import kept_nodes, layer_name, matching
from converter.quantize.observation import Observed, Progress, batch_size, observe
from converter.quantize.options import Options
from converter.quantize.report import Kept, Report, Row
from converter.quantize.weight_bits import WeightBits
from converter.quantize.weight_only import calibrated_nodes, store_bits, store_int8
from schema import inference
from schema.graph import Graph, Node, Tensor, all_nodes

STORED = {"float16": "float16", "int8-weights": "int8"}
"""The dtype that each method stores."""


def store(graph: Graph, options: Options, calibration: Any = None, progress: Progress | None = None) -> Report:
    """Store constants in fewer bits. calibration: what the weights are rounded to suit, None for nothing.

    Raises CalibrationError for data that does not fit the inputs.
    """
    kept = kept_nodes(graph, options)
    observed = Observed()
    if options.method == "float16":
        changed, left = store_float16(graph, kept)
    else:
        if calibration is not None:
            inference.annotate(graph)
            nodes = calibrated_nodes(graph, kept)
            batches = Batches(graph, calibration, batch_size(graph, [node.inputs[0] for node in nodes]))
            observed = observe(graph, batches, [], nodes, options.observer, progress)
        changed, left = store_int8(graph, kept, observed.moments)
    notes = [f"{len(changed)} constants stored as {STORED[options.method]}, {len(left)} kept as float32"]
    return Report(options.method, None, observed.samples, _rows(graph, changed, left), notes)


def store_weights(graph: Graph, options: Options, calibration: Any = None, progress: Progress | None = None) -> Report:
    """Store the weights of layers in the bits that `options.weights` gives them. calibration: as of `store`."""
    kept = kept_nodes(graph, options)
    bits = {node: number for node, number in _bits_of_nodes(graph, options.weights).items() if node not in kept}
    observed = Observed()
    if calibration is not None:
        inference.annotate(graph)
        nodes = [node for node in calibrated_nodes(graph, kept) if bits.get(node, 1) > 1]
        batches = Batches(graph, calibration, batch_size(graph, [node.inputs[0] for node in nodes]))
        observed = observe(graph, batches, [], nodes, options.observer, progress)
    changed, left = store_bits(graph, kept, bits, observed.moments)
    notes = [f"{len(changed)} kernels stored in {_counted(bits)} a weight, {len(left)} constants kept as float32"]
    return Report("weights", None, observed.samples, _rows(graph, changed, left), notes)


def _bits_of_nodes(graph: Graph, weights: WeightBits) -> dict[Node, int]:
    """Raises InputError for a pattern that matches no layer."""
    nodes, by_pattern = list(all_nodes(graph)), dict(weights.layers)
    named = matching(nodes, list(by_pattern), "weights")
    wanted = {node: by_pattern[named[node]] if node in named else weights.others for node in nodes}
    return {node: number for node, number in wanted.items() if number is not None}


def _counted(bits: dict[Node, int]) -> str:
    numbers = sorted(set(bits.values()))
    return " or ".join(map(str, numbers)) + (" bit" if numbers == [1] else " bits")


def _rows(graph: Graph, changed: list[Tensor], left: list[Kept]) -> list[Row]:
    stored, reasons = set(changed), {kept.tensor: kept.reason for kept in left}
    rows = []
    for node in all_nodes(graph):
        constants = [t for t in node.inputs if t is not None and (t in stored or t in reasons)]
        if constants:
            reason = "; ".join(f"'{t.name}' stays float32: {reasons[t]}" for t in constants if t in reasons)
            rows.append(Row(layer_name(node), node.op, "float32", _weight_scale(constants), reason=reason))
    return rows


def _weight_scale(tensors: list[Tensor]) -> tuple[float, float] | None:
    """(smallest, largest) of the constants that are stored as integers."""
    constants = [t.constant for t in tensors if t.constant is not None]
    scales = [c.channel_scale for c in constants if c.channel_scale is not None and c.values.dtype.kind == "i"]
    return (float(min(s.min() for s in scales)), float(max(s.max() for s in scales))) if scales else None

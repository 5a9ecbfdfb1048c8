"""Post-training quantization of a float graph, after the passes and before the file is written.

`quantize(graph, Options("int8"), calibration)` gives int8 with the integer semantics of `schema/ops`; `quantize(graph,
Options("float16"))` stores weights as float16. TensorFlow is not needed.
"""

from __future__ import annotations

from typing import Any

from converter.quantize.calibration import Batches, load
from converter.quantize.float16 import store_float16
from converter.quantize.int8 import Rewritten, commit, rewrite
from converter.quantize.observation import Progress, batch_size, derive, linear_nodes, observe, to_observe
from converter.quantize.options import Options
from converter.quantize.placement import Placement, place
from converter.quantize.report import Report, Row
from converter.quantize.rules import Scales
from converter.quantize.scales import ActivationScales, representable
from schema import inference
from schema.errors import CalibrationError, InputError
from schema.graph import Graph, Node

__all__ = ["Options", "Progress", "Report", "Row", "load", "quantize"]


def quantize(graph: Graph, options: Options, calibration: Any = None, progress: Progress | None = None) -> Report:
    """Quantize a float graph in place; it is left as it was when an error is raised.

    calibration: typical values of the inputs, for methods that need them; `converter.quantize.calibration` says what
    that can be. progress: called while calibrating.
    Raises InputError for data that the method has no use for, CalibrationError for data that does not fit the inputs.
    """
    options.check_calibration(calibration)
    if options.method == "float16":
        return _quantize_float16(graph)
    if options.method == "int8":
        return _quantize_int8(graph, calibration, options, progress)
    raise InputError(f"quantize is {options.method!r}: there is nothing to do")


def _quantize_int8(graph: Graph, calibration: Any, options: Options, progress: Progress | None) -> Report:
    observer, integer_io = options.observer, options.integer_io
    inference.annotate(graph)
    placement = place(graph)
    tensors = to_observe(placement, integer_io)
    linear = linear_nodes(placement)
    batches = Batches(graph, calibration, batch_size(graph, [*tensors, *(node.inputs[0] for node in linear)]))
    observed = observe(graph, batches, tensors, linear, observer, progress)
    derive(placement, observed)
    if observed.unbounded:
        placement = place(graph, observed.unbounded)
    for name, tensor in zip(graph.output_names, graph.outputs, strict=True):
        if integer_io and tensor in observed.unbounded:
            raise CalibrationError(
                f"output '{name}' cannot be int8: {observed.unbounded[tensor]}; keep io_dtype float32"
            )
    scales = ActivationScales(placement, observed.ranges)
    rewritten = rewrite(placement, scales, observed.moments, integer_io)
    rows = [
        _row(placement, scales, rewritten, node)
        for node in graph.nodes
        if node in placement.rules or node in placement.reasons
    ]
    commit(graph, rewritten)
    return Report("int8", observer, observed.samples, rows)


def _row(placement: Placement, scales: ActivationScales, rewritten: Rewritten, node: Node) -> Row:
    layer = node.name or node.outputs[0].name
    if node in placement.reasons:
        return Row(layer, node.op, "float32", reason=placement.reasons[node])
    weight_scale = clusters = None
    if (linear := rewritten.linear.get(node)) is not None:
        assert linear.weights.quantization is not None
        scale = linear.weights.quantization.scale
        weight_scale, clusters = (float(scale.min()), float(scale.max())), linear.distinct
    indices = placement.rules[node].scales is Scales.INDICES
    output = None if indices else representable(scales.of(node.outputs[0]))
    return Row(layer, node.op, "int8", weight_scale, clusters, output)


def _quantize_float16(graph: Graph) -> Report:
    changed, kept = store_float16(graph)
    reasons = {k.tensor: k.reason for k in kept}
    rows = []
    for node in graph.nodes:
        stored = [t for t in node.inputs if t in changed or t in reasons]
        if stored:
            reason = "; ".join(f"'{t.name}' stays float32: {reasons[t]}" for t in stored if t in reasons)
            rows.append(Row(node.name or node.outputs[0].name, node.op, "float32", reason=reason))
    return Report(
        "float16", rows=rows, notes=[f"{len(changed)} constants stored as float16, {len(kept)} kept as float32"]
    )

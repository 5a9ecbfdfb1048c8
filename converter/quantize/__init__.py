"""Quantization of a float graph, after the passes and before the file is written.

`quantize(graph, Options("int8"), calibration)` gives int8 with the integer semantics of `schema/ops`, "int16x8" int16
activations; a quantize-aware graph brings its ranges along and needs no data. "int8-weights" and "float16" store
weights in fewer bits and compute in float32. TensorFlow is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converter.quantize import loop_states
from converter.quantize.calibration import Batches, load
from converter.quantize.layers import layer_name, wanted
from converter.quantize.learned import has_learned
from converter.quantize.observation import (
    WIDE_OBSERVER,
    Observed,
    Progress,
    batch_size,
    derive,
    observe,
    to_observe,
)
from converter.quantize.options import REQUANTIZATION, Options
from converter.quantize.parts import Part, loops, parts_of, settle
from converter.quantize.placement import Placement
from converter.quantize.refine import refined
from converter.quantize.report import Report, Row
from converter.quantize.rewriting import Rewritten, commit, rewrite
from converter.quantize.rules import INT8, INT16, Scales
from converter.quantize.scales import ActivationScales, Form, representable
from converter.quantize.storage import STORED, store, store_weights
from converter.quantize.trained import add_ranges, store_grids
from schema import inference
from schema.errors import CalibrationError, InputError
from schema.graph import Graph, Node
from schema.quantization import Quantization

__all__ = ["REQUANTIZATION", "Options", "Progress", "Report", "Row", "has_learned", "load", "quantize"]


def quantize(graph: Graph, options: Options, calibration: Any = None, progress: Progress | None = None) -> Report:
    """Quantize a float graph in place; it is left as it was when an error is raised.

    calibration: typical values of the inputs, for methods that need them; `converter.quantize.calibration` says what
    that can be. progress: called while calibrating.
    Raises InputError for data that the method has no use for, CalibrationError for data that does not fit the inputs.
    """
    options.check_calibration(calibration)
    if graph.state and (calibration is not None or options.calibrated):
        raise InputError(
            f"{', '.join(map(repr, graph.state_names))}: a model that remembers something from one call to the next "
            "cannot be calibrated; quantize 'int8-weights' and 'float16' do without calibration data"
        )
    if not options.weights:
        return _by_method(graph, options, calibration, progress)
    if has_learned(graph):
        raise InputError("weights would undo what quantization-aware training learned: leave it out")
    stored = store_weights(graph, options, None if options.calibrated else calibration, progress)
    if options.method == "none":
        return stored
    report = _by_method(graph, options, calibration, progress)
    report.notes[:0] = [*stored.notes, *(f"{row.layer}: {row.reason}" for row in stored.rows if row.reason)]
    return report


def _by_method(graph: Graph, options: Options, calibration: Any, progress: Progress | None) -> Report:
    if options.method in STORED:
        return store(graph, options, calibration, progress)
    if options.equalize or options.bias_correction:
        if has_learned(graph):
            raise InputError(
                "equalize and bias_correction would undo what quantization-aware training learned: leave them out"
            )
        return refined(graph, options, calibration, lambda g, o, data: _quantize_integers(g, data, o, progress))
    if options.calibrated:
        return _quantize_integers(graph, calibration, options, progress)
    raise InputError(f"quantize is {options.method!r}: there is nothing to do")


def _quantize_integers(graph: Graph, calibration: Any, options: Options, progress: Progress | None) -> Report:
    io_dtype = np.dtype(options.io_dtype) if options.integer_io else None
    inference.annotate(graph)
    parts = parts_of(graph, wanted(graph, options), io_dtype)
    learned = {tensor: known for part in parts for tensor, known in part.learned.parameters.items()}
    forms: list[Form] = []
    if learned and calibration is None:
        observed = Observed()
        for part in reversed(parts):
            part.placement = add_ranges(part.placement, part.learned, part.io_dtype, observed)
    else:
        forms = [form for part in parts for form in part.to_observe()]
        linear = [node for part in parts for node in part.linear()]
        own = set(graph.tensors())
        seen = [*(tensor for tensor, _ in forms), *(node.inputs[0] for node in linear)]
        batches = Batches(graph, calibration, batch_size(graph, [tensor for tensor in seen if tensor in own]))
        observed = observe(graph, batches, forms, linear, options.observer, progress, loops(graph))
        settle(parts, observed)
        for part in reversed(parts):
            known = {form: part.learned.of(*form) for form in to_observe(part.placement, part.io_dtype)}
            observed.ranges.update({form: representable(q, form[1]) for form, q in known.items() if q is not None})
            derive(part.placement, observed)
            if observed.unbounded:
                part.placement = part.placement.without(observed.unbounded)
    for name, tensor in zip(graph.output_names, graph.outputs, strict=True):
        if io_dtype is not None and tensor in observed.unbounded:
            raise CalibrationError(
                f"output '{name}' cannot be {io_dtype}: {observed.unbounded[tensor]}; keep io_dtype float32"
            )
    rows: list[Row] = []
    for part, rewritten, scales in _rewritten(parts, observed, bool(learned)):
        rows += [
            _row(part.placement, scales, rewritten, node)
            for node in part.graph.nodes
            if node in part.placement.rules or node in part.placement.reasons.keys() - rewritten.replaced
        ]
        commit(part.graph, rewritten)
    notes = []
    if learned:
        stored = store_grids(graph)
        notes.append(f"ranges of {len(learned)} tensors learned while training")
        notes += [f"weights of {stored} constants of float32 layers stored as int8, as they were trained"] * bool(
            stored
        )
    if not forms and learned:
        return Report(options.method, None, observed.samples, rows, notes)
    observer = options.observer if any(dtype == INT8 for _, dtype in forms) else WIDE_OBSERVER
    return Report(options.method, observer, observed.samples, rows, notes)


def _rewritten(
    parts: Sequence[Part], observed: Observed, trained: bool
) -> list[tuple[Part, Rewritten, ActivationScales]]:
    """Each part with what it becomes. What the bodies of loops take is known before the graph around them."""
    carried: dict[Node, dict[int, Quantization]] = {}
    found = []
    for part in reversed(parts):
        scales = ActivationScales(part.placement, observed.ranges, part.learned, carried, part.ties())
        ends: dict[int, Quantization] = {}
        if part.loop is not None:
            ends = {slot: scales.of(part.graph.inputs[slot], INT16) for slot in loop_states.slots_of(part.loop)}
            carried[part.loop] = ends
        rewritten = rewrite(part.placement, scales, observed.moments, part.io_dtype, trained, ends)
        found.append((part, rewritten, scales))
    return found[::-1]


def _row(placement: Placement, scales: ActivationScales, rewritten: Rewritten, node: Node) -> Row:
    if node in placement.reasons:
        return Row(layer_name(node), node.op, "float32", reason=placement.reasons[node])
    weight_scale = clusters = None
    if (linear := rewritten.linear.get(node)) is not None:
        assert linear.weights.quantization is not None
        scale = linear.weights.quantization.scale
        weight_scale, clusters = (float(scale.min()), float(scale.max())), linear.distinct
    rule = placement.rules[node]
    several = rule.scales in (Scales.INDICES, Scales.CARRIED)
    output = None if several else representable(scales.of(node.outputs[0], rule.dtype), rule.dtype)
    return Row(layer_name(node), node.op, str(rule.dtype), weight_scale, clusters, output)

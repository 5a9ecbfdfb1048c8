"""MAX_POOL_2D(MAX_POOL_2D(x)) -> MAX_POOL_2D(x) with the windows of both; AVERAGE_POOL_2D of AVERAGE_POOL_2D and MEAN
of it where its windows lie side by side; REDUCE_MAX(MAX_POOL_2D(x)) -> REDUCE_MAX(x) where its windows hold every
pixel.

Windows that overlap are pooled twice with fewer steps than once with the large window: those stay.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from converter.candidates import INTEGERS, Candidate, Survey, left_over, objection, rewrite
from converter.constants import is_float, value_of
from converter.rewriter import layer
from schema.graph import Graph, Node
from schema.ops.windows import along, pad_amounts

PAIRS = {
    "MAX_POOL_2D": "MAX_POOL_2D",
    "AVERAGE_POOL_2D": "AVERAGE_POOL_2D",
    "MEAN": "AVERAGE_POOL_2D",
    "REDUCE_MAX": "MAX_POOL_2D",
}


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for outer in survey.rewriter.nodes(*PAIRS):
        inner = survey.rewriter.producer(outer.inputs[0], PAIRS[outer.op])
        if inner is None or survey.rewriter.only_consumer(inner.outputs[0]) is not outer:
            continue
        if inner.attributes.activation == "NONE" and survey.knows(inner, outer):
            merged = _merged(survey, inner, outer)
            if merged is not None:
                yield _candidate(survey, inner, outer, merged)


def _candidate(survey: Survey, inner: Node, outer: Node, merged: Node) -> Candidate:
    where = f"{layer(inner)} and {layer(outer)}"
    saving = survey.compute(inner, outer) - survey.compute(merged)
    steps = _steps(survey, merged) - _steps(survey, inner) - _steps(survey, outer)
    against = f"{steps} comparisons or additions more" if steps > 0 else objection(saving)
    scales = [t.quantization for t in (inner.inputs[0], inner.outputs[0], outer.outputs[0])]
    exact = outer.op in ("MAX_POOL_2D", "REDUCE_MAX") and scales[0] == scales[1] == scales[2]
    if not (exact or is_float(outer.outputs[0])):
        against = INTEGERS

    def apply() -> str:
        survey.rewriter.rewrite(outer, inputs=merged.inputs, attributes=merged.attributes)
        return f"{where}: two poolings became one"

    return Candidate(where, saving, against, apply)


def _merged(survey: Survey, inner: Node, outer: Node) -> Node | None:
    x, size = inner.inputs[0], survey.types[inner.inputs[0]].shape[1:3]
    taps, strides = along(inner.attributes, "filter", "hw"), along(inner.attributes, "stride", "hw")
    pads = pad_amounts(inner.attributes, "hw", size, taps)
    inputs = [x, *outer.inputs[1:]]
    if inner.attributes.padding == "SAME" and None in x.shape[1:3]:
        return None  # what SAME pads depends on sizes that are open
    if inner.op == "AVERAGE_POOL_2D" and (taps != strides or any(map(any, pads))):
        return None
    if outer.op in ("MEAN", "REDUCE_MAX"):
        axes = value_of(outer.inputs[1])
        if axes is None or sorted({int(axis) % 4 for axis in axes.flat}) != [1, 2] or None in x.shape[1:3]:
            return None
        ends = zip(size, taps, strides, pads, strict=True)
        if not all(k >= s and (n + sum(p) - k) % s == 0 for n, k, s, p in ends):
            return None
        return Node(outer.op, inputs, outer.outputs, outer.attributes)
    if any(map(any, pad_amounts(outer.attributes, "hw", survey.types[outer.inputs[0]].shape[1:3], _filter(outer)))):
        return None
    reach = [k + (j - 1) * s for k, j, s in zip(taps, _filter(outer), strides, strict=True)]
    steps = [s * t for s, t in zip(strides, along(outer.attributes, "stride", "hw"), strict=True)]
    flat = tuple(int(n) for pair in pads for n in pair)
    attributes = dataclasses.replace(
        outer.attributes,
        **dict(zip(("filter_h", "filter_w"), reach, strict=True)),
        **dict(zip(("stride_h", "stride_w"), steps, strict=True)),
        padding="EXPLICIT" if any(flat) else "VALID",
        pads=flat if any(flat) else (),
    )
    return Node(outer.op, inputs, outer.outputs, attributes)


def _filter(pool: Node) -> tuple[int, ...]:
    return along(pool.attributes, "filter", "hw")


def _steps(survey: Survey, pool: Node) -> int:
    """How many numbers are taken into results."""
    if pool.op in ("MEAN", "REDUCE_MAX"):
        return math.prod(survey.types[pool.inputs[0]].shape)
    return math.prod(survey.types[pool.outputs[0]].shape) * math.prod(_filter(pool))

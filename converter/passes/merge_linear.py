"""DENSE(DENSE(x, a), b) -> DENSE(x, b a); CONV(CONV(x, a), b) -> CONV(x, b a) where one of the kernels is 1x1. For
linear layers in a row without an activation between them, whose first result nobody else reads.

Done where neither bytes nor time grow: not behind a bottleneck, and not where the product of two pruned or clustered
kernels would take more bytes than they do. A 1x1 convolution with a bias before one with padding stays: at the border
the bias is not there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from converter.candidates import INTEGERS, Candidate, Survey, left_over, objection, rewrite
from converter.constants import constant, is_float
from converter.linear import bias_value, foldable
from converter.rewriter import layer
from schema.graph import Graph, Node, Tensor
from schema.ops.attributes import Conv2DAttributes, FullyConnectedAttributes
from schema.ops.windows import along, pad_amounts


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for outer in survey.rewriter.nodes("FULLY_CONNECTED", "CONV_2D"):
        inner = survey.rewriter.producer(outer.inputs[0], outer.op)
        if inner is None or survey.rewriter.only_consumer(inner.outputs[0]) is not outer:
            continue
        if inner.attributes.activation != "NONE" or not survey.knows(inner, outer):
            continue
        if not (inner.inputs[1].is_constant and outer.inputs[1].is_constant):
            continue
        attributes = _dense(inner, outer) if outer.op == "FULLY_CONNECTED" else _convolution(survey, inner, outer)
        if attributes is not None:
            yield _candidate(survey, inner, outer, attributes)


def _candidate(survey: Survey, inner: Node, outer: Node, attributes: Any) -> Candidate:
    where = f"{layer(inner)} and {layer(outer)}"
    # The product costs as much to compute whatever is in it: it is made only where that pays.
    shape = np.broadcast_to(np.zeros((), np.float32), _shape(inner, outer))
    compute = survey.compute(inner, outer) - survey.compute(_merged(inner, outer, attributes, shape, np.zeros(1)))
    if not (is_float(outer.outputs[0]) and foldable(inner) and foldable(outer)):
        return Candidate(where, compute, INTEGERS)
    if objection(compute):
        return Candidate(where, compute, objection(compute))
    merged = _merged(inner, outer, attributes, *_product(inner, outer))
    saving = survey.cost(inner, outer) - survey.cost(merged)

    def apply() -> str:
        survey.rewriter.rewrite(outer, inputs=merged.inputs, attributes=attributes)
        return f"{where}: two linear layers became one"

    return Candidate(where, saving, objection(saving), apply)


def _merged(inner: Node, outer: Node, attributes: Any, weights: np.ndarray, bias: np.ndarray) -> Node:
    inputs: list[Tensor | None] = [inner.inputs[0], constant(f"{outer.name}/kernel", weights)]
    if bias.any():
        inputs.append(constant(f"{outer.name}/bias", bias.astype(weights.dtype)))
    return Node(outer.op, inputs, outer.outputs, attributes, outer.name)


def _shape(inner: Node, outer: Node) -> tuple[int, ...]:
    """Of the merged kernel: (out, *taps, in)."""
    a, b = inner.inputs[1].shape, outer.inputs[1].shape
    return (b[0], *(a if _is_pointwise(outer) else b)[1:-1], a[-1])


def _product(inner: Node, outer: Node) -> tuple[np.ndarray, np.ndarray]:
    """The merged kernel and bias."""
    a, b = (node.inputs[1].value.astype(np.float64) for node in (inner, outer))
    if _is_pointwise(outer):
        product = np.tensordot(b.reshape(b.shape[0], -1), a, axes=(1, 0))
    else:
        product = b @ a.reshape(a.shape[0], -1)
    taps = b.reshape(b.shape[0], -1, b.shape[-1]).sum(axis=1)
    kernel = np.ascontiguousarray(product.astype(outer.inputs[1].dtype))
    return kernel, bias_value(outer) + taps @ bias_value(inner)


def _dense(inner: Node, outer: Node) -> FullyConnectedAttributes:
    return dataclasses.replace(
        outer.attributes, keep_num_dims=outer.attributes.keep_num_dims and inner.attributes.keep_num_dims
    )


def _is_pointwise(node: Node) -> bool:
    return node.op == "FULLY_CONNECTED" or node.inputs[1].shape[1:3] == (1, 1)


def _convolution(survey: Survey, inner: Node, outer: Node) -> Conv2DAttributes | None:
    """The merged convolution's attributes, None where the two are not one convolution."""
    for node in (inner, outer):
        if survey.types[node.inputs[0]].shape[-1] != node.inputs[1].shape[-1]:
            return None  # groups
    size = survey.types[inner.inputs[0]].shape[1:3]
    if _is_pointwise(outer):
        if any(before or after for before, after in _pads(survey, outer)):
            return None
        steps = along(outer.attributes, "stride", "hw")
        strides = [a * b for a, b in zip(along(inner.attributes, "stride", "hw"), steps, strict=True)]
        attributes = dataclasses.replace(inner.attributes, stride_h=strides[0], stride_w=strides[1])
        if steps != (1, 1) and inner.attributes.padding == "SAME":
            if any(size is None for size in inner.inputs[0].shape[1:3]):
                return None  # what SAME pads depends on sizes that are open
            pads = [n for pair in pad_amounts(inner.attributes, "hw", size, inner.inputs[1].shape[1:3]) for n in pair]
            attributes = dataclasses.replace(
                attributes,
                padding="EXPLICIT" if any(pads) else "VALID",
                pads=tuple(map(int, pads)) if any(pads) else (),
            )
        names = ("activation", "clamp_min", "clamp_max")
        return dataclasses.replace(attributes, **{name: getattr(outer.attributes, name) for name in names})
    padded = any(before or after for before, after in _pads(survey, inner))
    if not _is_pointwise(inner) or along(inner.attributes, "stride", "hw") != (1, 1) or padded:
        return None
    if outer.attributes.padding != "VALID" and bias_value(inner).any():
        return None
    return outer.attributes


def _pads(survey: Survey, node: Node) -> list[tuple[int, int]]:
    return pad_amounts(node.attributes, "hw", survey.types[node.inputs[0]].shape[1:3], node.inputs[1].shape[1:3])

"""ADD(CONV(x, a), CONV(x, b)) -> CONV(x, a + b), and so for dense layers: kernels of one size and the same attributes,
or a 1x1 kernel beside a larger one, at whose tap it is added.

Blocks that train with parallel branches (RepVGG's 3x3 and 1x1) compute one of them at inference. Done where the sum
takes no more bytes than its kernels apart: two pruned ones may have few zeros in common.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from converter.candidates import Candidate, Survey, left_over, objection, rewrite
from converter.constants import constant, is_float
from converter.linear import bias_value, foldable
from converter.rewriter import layer
from schema.graph import Graph, Node, Tensor
from schema.ops.windows import along, pad_amounts

ACTIVATION = ("activation", "clamp_min", "clamp_max")


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for addition in survey.rewriter.nodes("ADD"):
        first, second = (survey.rewriter.producer(tensor, "CONV_2D", "FULLY_CONNECTED") for tensor in addition.inputs)
        if first is None or second is None or first is second or first.inputs[0] is not second.inputs[0]:
            continue
        if all(_summand(survey, node, addition) for node in (first, second)) and first.op == second.op:
            if first.inputs[1].shape[1:3] == (1, 1):
                first, second = second, first
            kernel = _sum(survey, first, second)
            if kernel is not None:
                yield _candidate(survey, first, second, addition, kernel)


def _summand(survey: Survey, node: Node, addition: Node) -> bool:
    output = node.outputs[0]
    return (
        is_float(output)
        and node.attributes.activation == "NONE"
        and foldable(node)
        and survey.knows(node, addition)
        and survey.rewriter.only_consumer(output) is addition
        and survey.types[output].shape == survey.types[addition.outputs[0]].shape
    )


def _sum(survey: Survey, first: Node, second: Node) -> np.ndarray | None:
    """The kernel that both are together, None where they see different pixels. If one is 1x1, it is the second."""
    a, b = (node.inputs[1].value for node in (first, second))
    if a.shape == b.shape:
        return a + b if first.attributes == second.attributes else None
    if first.op != "CONV_2D" or b.shape[1:3] != (1, 1) or a.shape[0] != b.shape[0] or a.shape[3] != b.shape[3]:
        return None
    strides = along(first.attributes, "stride", "hw")
    if strides != along(second.attributes, "stride", "hw") or second.attributes.padding == "EXPLICIT":
        return None
    x = first.inputs[0]
    if first.attributes.padding == "SAME" and strides != (1, 1) and None in x.shape[1:3]:
        return None  # which tap meets the pixel depends on sizes that are open
    pads = pad_amounts(first.attributes, "hw", survey.types[x].shape[1:3], a.shape[1:3])
    taps = [divmod(p, d) for (p, _), d in zip(pads, along(first.attributes, "dilation", "hw"), strict=True)]
    if any(rest or tap >= size for (tap, rest), size in zip(taps, a.shape[1:3], strict=True)):
        return None
    kernel = a.copy()
    kernel[:, taps[0][0], taps[1][0]] += b[:, 0, 0]
    return kernel


def _candidate(survey: Survey, first: Node, second: Node, addition: Node, kernel: np.ndarray) -> Candidate:
    where = f"{layer(first)} and {layer(second)}"
    inputs: list[Tensor | None] = [first.inputs[0], constant(f"{first.name}/kernel", kernel)]
    bias = bias_value(first) + bias_value(second)
    if bias.any():
        inputs.append(constant(f"{first.name}/bias", bias.astype(kernel.dtype)))
    activation = {name: getattr(addition.attributes, name) for name in ACTIVATION}
    attributes = dataclasses.replace(first.attributes, **activation)
    merged = Node(first.op, inputs, addition.outputs, attributes)
    saving = survey.cost(first, second, addition) - survey.cost(merged)

    def apply() -> str:
        survey.rewriter.rewrite(addition, first.op, inputs, attributes, first.name)
        return f"{where}: the sum of two layers on one input became one"

    return Candidate(where, saving, objection(saving), apply)

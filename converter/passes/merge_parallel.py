"""CONCATENATION(CONV(x, a), CONV(x, b), ...) -> CONCATENATION(CONV(x, a | b), ...), and so for dense layers: neighbours
that read the same input with kernels of the same size and the same attributes become one layer with the outputs of all.

x is then read once. Done where the kernels together take no more bytes than apart: two codebooks may become one that is
larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from converter.candidates import Candidate, Survey, left_over, objection, rewrite
from converter.constants import constant, is_float
from converter.linear import bias_value, foldable
from converter.rewriter import layer
from schema.graph import Constant, Graph, Node, Tensor, TensorType


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for joint in survey.rewriter.nodes("CONCATENATION"):
        rank = len(joint.outputs[0].shape or ())
        if joint.attributes.axis not in (-1, rank - 1):
            continue
        found = [_candidate(survey, joint, nodes) for nodes in _neighbours(survey, joint) if survey.knows(joint)]
        # One at a time: the others speak of the joint as it was.
        pays = [candidate for candidate in found if not candidate.against]
        yield from pays[:1] or found


def _neighbours(survey: Survey, joint: Node) -> Iterator[list[Node]]:
    """Runs of two and more inputs of the joint that could be made by one layer."""
    makers = [_maker(survey, joint, tensor) for tensor in joint.inputs]

    def key(index: int) -> tuple:
        node = makers[index]
        return (index,) if node is None else (node.op, node.inputs[0], node.attributes, node.inputs[1].shape[1:])

    for _, indices in groupby(range(len(makers)), key):
        run = [makers[index] for index in indices]
        if len(run) > 1 and None not in run:
            yield run


def _maker(survey: Survey, joint: Node, tensor: Tensor) -> Node | None:
    node = survey.rewriter.producer(tensor, "CONV_2D", "FULLY_CONNECTED")
    if node is None or survey.rewriter.only_consumer(tensor) is not joint or joint.inputs.count(tensor) > 1:
        return None
    if not (is_float(tensor) and foldable(node) and survey.knows(node)):
        return None
    whole = survey.types[node.inputs[0]].shape[-1] == node.inputs[1].shape[-1]
    return node if node.op == "FULLY_CONNECTED" or whole else None


def _candidate(survey: Survey, joint: Node, nodes: Sequence[Node]) -> Candidate:
    first, names = nodes[0], " and ".join(dict.fromkeys(layer(node) for node in nodes))
    inputs: list[Tensor | None] = [first.inputs[0], _joined([node.inputs[1] for node in nodes])]
    biases = np.concatenate([bias_value(node) for node in nodes])
    if biases.any():
        inputs.append(constant(f"{first.name}/bias", biases.astype(first.outputs[0].dtype)))
    together = Tensor("together", first.outputs[0].dtype)
    shape = (*survey.types[first.outputs[0]].shape[:-1], len(biases))
    merged = Node(first.op, inputs, [together], first.attributes)
    start = joint.inputs.index(first.outputs[0])
    rest = [*joint.inputs[:start], together, *joint.inputs[start + len(nodes) :]]
    after = [merged] if len(rest) == 1 else [merged, Node(joint.op, rest, joint.outputs, joint.attributes)]
    types = {together: TensorType(shape, together.dtype)}
    saving = survey.cost(*nodes, joint) - survey.cost(*after, types=types)

    def apply() -> str:
        output = survey.rewriter.add(first.op, inputs, first.attributes, before=joint, name=first.name)
        survey.rewriter.rewrite(joint, inputs=[output if tensor is together else tensor for tensor in rest])
        return f"{names}: {len(nodes)} layers on one input became one"

    return Candidate(names, saving, objection(saving), apply)


def _joined(kernels: Sequence[Tensor]) -> Tensor:
    """Kernels (out, ...) along their outputs, stored as they were where they are stored alike."""
    stored, name = [kernel.constant for kernel in kernels], kernels[0].name
    arrays = [np.asarray(c.values) for c in stored]
    alike = len({array.dtype for array in arrays}) == 1
    if not alike or any(c.channel_scale is not None and c.axis != 0 for c in stored):
        return constant(name, np.concatenate([kernel.value for kernel in kernels]))
    scale = None
    if any(c.channel_scale is not None for c in stored):
        ones = [np.ones(len(array), np.float32) for array in arrays]
        scales = [o if c.channel_scale is None else c.channel_scale for o, c in zip(ones, stored, strict=True)]
        scale = np.concatenate(scales)
    values = np.concatenate(arrays)
    return Tensor(name, kernels[0].dtype, values.shape, None, Constant(values, scale, 0))

"""MEAN(CONV_1x1(x)) -> CONV_1x1(MEAN(x)), AVERAGE_POOL_2D(CONV_1x1(x)) -> CONV_1x1(AVERAGE_POOL_2D(x)), and so for
dense layers on sequences: the mean of linear functions is the function of the mean.

A classifier that ends in a 1x1 convolution and global average pooling computes one pixel instead of all. An activation
between the two, or a stride of the convolution, keeps them in their order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from converter.candidates import INTEGERS, Candidate, Survey, left_over, objection, rewrite
from converter.constants import is_float, value_of
from converter.linear import foldable
from converter.rewriter import layer
from schema.graph import Constant, Graph, Node, Tensor, TensorType
from schema.ops.attributes import FullyConnectedAttributes
from schema.ops.windows import along

ACTIVATION = ("activation", "clamp_min", "clamp_max")


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for pool in survey.rewriter.nodes("MEAN", "AVERAGE_POOL_2D"):
        linear = survey.rewriter.producer(pool.inputs[0], "CONV_2D", "FULLY_CONNECTED")
        if linear is None or survey.rewriter.only_consumer(linear.outputs[0]) is not pool:
            continue
        if linear.attributes.activation == "NONE" and survey.knows(linear, pool) and _commute(survey, linear, pool):
            yield _candidate(survey, linear, pool)


def _commute(survey: Survey, linear: Node, pool: Node) -> bool:
    x, weights = linear.inputs[0], linear.inputs[1]
    if not weights.is_constant:
        return False
    if linear.op == "FULLY_CONNECTED":
        return pool.op == "MEAN" and linear.attributes.keep_num_dims and 0 < len(_axes(pool)) < len(x.shape)
    pads = linear.attributes.pads if linear.attributes.padding == "EXPLICIT" else ()
    if weights.shape[1:] != (1, 1, survey.types[x].shape[-1]) or any(pads):
        return False
    return along(linear.attributes, "stride", "hw") == (1, 1) and (pool.op != "MEAN" or _axes(pool) == [1, 2])


def _axes(pool: Node) -> list[int]:
    """The axes that a MEAN takes, [] unless they are known and leave the channels."""
    axes, rank = value_of(pool.inputs[1]), len(pool.inputs[0].shape)
    found = [] if axes is None else sorted({int(axis) % rank for axis in axes.flat})
    return [] if rank - 1 in found else found


def _candidate(survey: Survey, linear: Node, pool: Node) -> Candidate:
    where, x = f"{layer(linear)} and {layer(pool)}", linear.inputs[0]
    op, weights, attributes = linear.op, linear.inputs[1], linear.attributes
    after: Any = pool.attributes
    if op == "CONV_2D" and pool.op == "MEAN" and not pool.attributes.keep_dims:
        op, weights, attributes = "FULLY_CONNECTED", _matrix(weights), FullyConnectedAttributes()
    if pool.op == "AVERAGE_POOL_2D":
        attributes = dataclasses.replace(attributes, **{name: getattr(after, name) for name in ACTIVATION})
        after = dataclasses.replace(after, activation="NONE", clamp_min=0.0, clamp_max=0.0)
    inputs = [weights, *linear.inputs[2:]]
    pooled = Tensor("pooled", x.dtype)
    shape = (*survey.types[pool.outputs[0]].shape[:-1], survey.types[x].shape[-1])
    nodes = [
        Node(pool.op, [x, *pool.inputs[1:]], [pooled], after),
        Node(op, [pooled, *inputs], pool.outputs, attributes),
    ]
    types = {pooled: TensorType(shape, x.dtype)}
    saving = survey.compute(linear, pool) - survey.compute(*nodes, types=types)

    def apply() -> str:
        rewriter = survey.rewriter
        first = rewriter.add(pool.op, nodes[0].inputs, after, before=pool)
        line = f"{layer(pool)}: {pool.op} moved before {layer(linear)}"
        rewriter.rewrite(pool, op, [first, *inputs], attributes, linear.name)
        return line

    if not (is_float(pool.outputs[0]) and foldable(linear)):
        return Candidate(where, saving, INTEGERS)
    return Candidate(where, saving, objection(saving), apply)


def _matrix(weights: Tensor) -> Tensor:
    """A 1x1 kernel (out, 1, 1, in) as (out, in), stored as it was."""
    stored, shape = weights.constant, (weights.shape[0], weights.shape[3])
    axis = 1 if stored.axis == 3 else 0
    if stored.channel_scale is not None and stored.axis not in (0, 3):
        return Tensor.from_array(weights.name, weights.value.reshape(shape), weights.quantization)
    values = np.asarray(stored.values).reshape(shape)
    constant = Constant(values, stored.channel_scale, axis)
    return Tensor(weights.name, weights.dtype, shape, weights.quantization, constant)

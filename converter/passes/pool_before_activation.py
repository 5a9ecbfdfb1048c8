"""MAX_POOL_2D(f(x)) -> f(MAX_POOL_2D(x)), and so for REDUCE_MAX, where f never falls: the largest of the results is the
result of the largest. The activation is then computed of a quarter of the numbers, or fewer.

int8 too, where the reference's 256 results of f never fall. Activations that a layer before computes with its own
result are fused there and never seen here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from converter.candidates import Candidate, Survey, left_over, objection, rewrite
from converter.constants import is_float
from converter.rewriter import layer
from schema import ops
from schema.graph import Graph, Node, Tensor, TensorType

RISING = frozenset(
    """RELU RELU6 RELU_N1_TO_1 CLAMP LOGISTIC TANH SOFTPLUS SOFTSIGN SELU EXP EXPM1 ERF FLOOR CEIL ROUND""".split()
)
WITH_ALPHA = ("LEAKY_RELU", "ELU")
"""Rise where their alpha is not negative."""


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for pool in survey.rewriter.nodes("MAX_POOL_2D", "REDUCE_MAX"):
        function = survey.rewriter.producer(pool.inputs[0])
        if function is None or survey.rewriter.only_consumer(function.outputs[0]) is not pool:
            continue
        if getattr(pool.attributes, "activation", "NONE") != "NONE" or not survey.knows(function, pool):
            continue
        if _rises(function) and function.outputs[0].quantization == pool.outputs[0].quantization:
            yield _candidate(survey, function, pool)


def _candidate(survey: Survey, function: Node, pool: Node) -> Candidate:
    x, output = function.inputs[0], pool.outputs[0]
    pooled = Tensor("pooled", x.dtype, quantization=x.quantization)
    types = {pooled: TensorType(survey.types[output].shape, x.dtype, x.quantization)}
    inputs = [x, *pool.inputs[1:]]
    nodes = [
        Node(pool.op, inputs, [pooled], pool.attributes),
        Node(function.op, [pooled], [output], function.attributes),
    ]
    saving = survey.compute(function, pool) - survey.compute(*nodes, types=types)

    def apply() -> str:
        rewriter = survey.rewriter
        first = rewriter.add(pool.op, inputs, pool.attributes, before=pool, quantization=x.quantization)
        line = f"{layer(pool)}: {pool.op} moved before {layer(function)} ({function.op})"
        rewriter.rewrite(pool, function.op, [first], function.attributes, function.name)
        return line

    return Candidate(f"{layer(function)} and {layer(pool)}", saving, objection(saving), apply)


def _rises(function: Node) -> bool:
    if len(function.inputs) != 1 or len(function.outputs) != 1:
        return False
    x, y = function.inputs[0], function.outputs[0]
    if is_float(x) and is_float(y):
        return function.op in RISING or (function.op in WITH_ALPHA and function.attributes.alpha >= 0.0)
    if function.op not in RISING and function.op not in (*WITH_ALPHA, "QUANTIZE"):
        return False
    if x.dtype != np.int8 or y.dtype != np.int8 or x.quantization is None or x.quantization.per_channel:
        return False
    every = np.arange(-128, 128).astype(np.int8)
    kinds = [TensorType((256,), t.dtype, t.quantization) for t in (x, y)]
    (results,) = ops.get(function.op).reference(function.attributes, [every], kinds[:1], kinds[1:])
    return bool((np.diff(results.astype(np.int16)) >= 0).all())

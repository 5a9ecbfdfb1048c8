"""CONV(x, w) -> CONV_1x1(CONV(x, a), b) or CONV(CONV_1x1(x, a), b), DENSE(x, w) -> DENSE(DENSE(x, a), b) where w as a
matrix is the product of two smaller ones: its rank r, to float32's precision, is so small that r (m + n) < m n.

Trained kernels have full rank; those of layers that were widened, made from factors, or have duplicate or removed
channels may not. Done where the factors take no more bytes: those of a pruned kernel have fewer zeros.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from converter.candidates import Candidate, Survey, left_over, objection, rewrite
from converter.constants import constant, is_float
from converter.linear import foldable
from converter.rewriter import layer
from schema.graph import Constant, Graph, Node, Tensor, TensorType

TOLERANCE = 2e-7
"""Of the norm: float32 numbers of an exact product are off by 3e-8 of it."""
LEAST, LARGEST = 1024, 1024
"""Fewer weights are not worth another layer; finding the rank of more rows and columns would take long."""

Factors = tuple[np.ndarray, np.ndarray]
_FOUND: WeakKeyDictionary[Constant, dict[bool, Factors | None]] = WeakKeyDictionary()


def run(graph: Graph) -> list[str]:
    return rewrite(graph, find)


def survey(graph: Graph) -> list[Candidate]:
    return left_over(graph, find)


def find(survey: Survey) -> Iterator[Candidate]:
    for node in survey.rewriter.nodes("CONV_2D", "FULLY_CONNECTED"):
        if not (is_float(node.outputs[0]) and foldable(node) and survey.knows(node)):
            continue
        weights, x = node.inputs[1], survey.types[node.inputs[0]]
        if node.op == "CONV_2D" and x.shape[-1] != weights.shape[-1]:
            continue  # groups
        whole = node.op == "FULLY_CONNECTED" or weights.shape[1:3] == (1, 1)
        candidates = [_candidate(survey, node, first) for first in ((False,) if whole else (False, True))]
        found = [candidate for candidate in candidates if candidate is not None]
        if found:
            yield max(found, key=lambda candidate: (not candidate.against, candidate.saving.macs))


def _candidate(survey: Survey, node: Node, pointwise_first: bool) -> Candidate | None:
    """pointwise_first: the 1x1 convolution comes before the other."""
    factors = _factors(node.inputs[1], pointwise_first)
    if factors is None:
        return None
    a, b = (constant(f"{node.name}/factor", factor) for factor in factors)
    attributes, kinds = node.attributes, survey.types
    inner_attributes = dataclasses.replace(attributes, activation="NONE", clamp_min=0.0, clamp_max=0.0)
    shape = kinds[node.outputs[0]].shape
    if node.op == "CONV_2D":
        plain = type(attributes)()
        if pointwise_first:
            inner_attributes, shape = plain, kinds[node.inputs[0]].shape
        else:
            activation = ("activation", "clamp_min", "clamp_max")
            attributes = dataclasses.replace(plain, **{name: getattr(attributes, name) for name in activation})
    elif not attributes.keep_num_dims:
        attributes = dataclasses.replace(attributes, keep_num_dims=True)
    between = Tensor("between", node.outputs[0].dtype)
    types = {between: TensorType((*shape[:-1], a.shape[0]), between.dtype)}
    inner = Node(node.op, [node.inputs[0], a], [between], inner_attributes)
    outer = Node(node.op, [between, b, *node.inputs[2:]], node.outputs, attributes)
    saving = survey.cost(node) - survey.cost(inner, outer, types=types)

    def apply() -> str:
        first = survey.rewriter.add(node.op, inner.inputs, inner_attributes, before=node)
        survey.rewriter.rewrite(node, inputs=[first, *outer.inputs[1:]], attributes=attributes)
        return f"{layer(node)}: kernel of rank {a.shape[0]} became two"

    return Candidate(layer(node), saving, objection(saving), apply)


def _factors(weights: Tensor, pointwise_first: bool) -> Factors | None:
    """Kernels (r, ...) and (out, ...), None for a kernel of too high a rank."""
    known = _FOUND.setdefault(weights.constant, {})
    if pointwise_first not in known:
        known[pointwise_first] = _factorize(weights.value, pointwise_first)
    return known[pointwise_first]


def _factorize(kernel: np.ndarray, pointwise_first: bool) -> Factors | None:
    out, *taps, depth = kernel.shape
    matrix = kernel.reshape(-1, depth) if pointwise_first else kernel.reshape(out, -1)
    product = low_rank(matrix.astype(np.float64))
    if product is None:
        return None
    left, right = (factor.astype(kernel.dtype) for factor in product)
    rank = len(right)
    if pointwise_first:
        return right.reshape(rank, *[1] * len(taps), depth), left.reshape(out, *taps, rank)
    return right.reshape(rank, *taps, depth), left.reshape(out, *[1] * len(taps), rank)


def low_rank(matrix: np.ndarray) -> Factors | None:
    """(m, r) and (r, n), r >= 1, whose product is the matrix (m, n) to TOLERANCE and which are smaller than it; None
    where there are none.
    """
    m, n = matrix.shape
    most = (m * n - 1) // (m + n)
    norm = float(np.sqrt(np.square(matrix).sum()))
    if most < 1 or m * n < LEAST or min(m, n) > LARGEST or not 0 < norm < np.inf:
        return None
    if _is_independent(matrix if m <= n else matrix.T, most + 1, (TOLERANCE * norm) ** 2):
        return None
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    tails = np.sqrt(np.cumsum((s**2)[::-1]))[::-1]  # what is left without the first k
    rank = int(np.count_nonzero(tails > TOLERANCE * norm))
    if rank > most:
        return None
    root = np.sqrt(s[:rank])
    return u[:, :rank] * root, root[:, np.newaxis] * v[:rank]


def _is_independent(matrix: np.ndarray, rows: int, least: float) -> bool:
    """Whether so many rows, spread over the matrix, have a Gram matrix (of some of the columns) whose eigenvalues all
    exceed `least`: then the matrix's rank is no smaller. Much faster than finding the rank.
    """
    if len(matrix) < rows:
        return False
    columns = min(matrix.shape[1], 2 * rows)
    some = matrix[np.ix_(_spread(len(matrix), rows), _spread(matrix.shape[1], columns))]
    try:
        np.linalg.cholesky(some @ some.T - least * np.eye(rows))
    except np.linalg.LinAlgError:
        return False
    return True


def _spread(count: int, chosen: int) -> np.ndarray:
    return np.linspace(0, count - 1, chosen).astype(int)

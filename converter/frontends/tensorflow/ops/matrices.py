"""Matrix products, and einsum in terms of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converter.frontends.tensorflow.ops.reading import Reading, Result, reads
from converter.frontends.tensorflow.ops.sizes import merge_axes, reshape, size
from schema.errors import UnsupportedError
from schema.graph import Tensor


@reads("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(reading: Reading) -> Result:
    """A constant matrix on the right makes a FULLY_CONNECTED."""
    a, b = reading.tensors()
    names = ("transpose_a", "transpose_b") if reading.node.op == "MatMul" else ("adj_x", "adj_y")
    transpose_a, transpose_b = (bool(reading.attribute(name)) for name in names)
    if b.is_constant and reading.rank(b) == 2 and not transpose_a:
        return fully_connected(reading, a, b if transpose_b else reading.transpose(b, 1, 0))
    return reading.emit("BATCH_MATMUL", a, b, adj_x=transpose_a, adj_y=transpose_b)


def fully_connected(reading: Reading, x: Tensor, weights: Tensor) -> Tensor:
    """x (..., in) times weights (out, in)."""
    return reading.emit("FULLY_CONNECTED", x, weights, None, keep_num_dims=True)


@reads("MatrixBandPart")
def band_part(reading: Reading) -> Result:
    """Zeros but for `lower` diagonals below the main one and `upper` above it; negative: all of them."""
    x, (lower, upper) = reading.tensor(0), (reading.integer(i, "the band's width") for i in (1, 2))
    rank = reading.rank(x)
    zero, one = (reading.constant(n, np.int32) for n in (0, 1))
    ends = [size(reading, x, rank - 2 + i) for i in range(2)]
    row, column = (
        reading.emit("RANGE", zero, end if isinstance(end, Tensor) else reading.constant(end, np.int32), one)
        for end in ends
    )
    below = reading.emit("SUB", reading.emit("RESHAPE", row, reading.constant([-1, 1], np.int32)), column)
    inside = []
    if lower >= 0:
        inside.append(reading.emit("LESS_EQUAL", below, reading.constant(lower, np.int32)))
    if upper >= 0:
        inside.append(reading.emit("GREATER_EQUAL", below, reading.constant(-upper, np.int32)))
    for condition in inside:
        x = reading.emit("SELECT_V2", condition, x, reading.constant(0, x.dtype))
    return x


@reads("Einsum")
def einsum(reading: Reading) -> Result:
    """Of one or two operands, each axis label at most once in an operand."""
    equation = reading.attribute("equation").replace(" ", "")
    terms, arrow, output = equation.partition("->")
    operands = reading.tensors()
    labels = [_labels(term, reading.rank(x)) for term, x in zip(terms.split(","), operands, strict=True)]
    wanted = _result(output, labels)
    if not arrow or len(operands) > 2 or any(len(set(axes)) < len(axes) for axes in (*labels, wanted)):
        raise UnsupportedError(f"einsum '{equation}' is not supported; write it as products of two tensors")
    kept = set(wanted)
    for index, axes in enumerate(labels):
        alone = [
            a for a in axes if a not in kept and not any(a in other for i, other in enumerate(labels) if i != index)
        ]
        operands[index], labels[index] = _sum_out(reading, operands[index], axes, alone)
    if len(operands) == 1:
        return _arranged(reading, operands[0], labels[0], wanted)
    return _product(reading, operands, labels, wanted)


def _labels(term: str, rank: int) -> list[str]:
    """One label for each axis; the axes of "..." are labelled by how far they are from its end."""
    before, dots, after = term.partition("...")
    if not dots:
        return list(term)
    return [*before, *(f".{i}" for i in range(rank - len(before) - len(after), 0, -1)), *after]


def _result(output: str, labels: Sequence[Sequence[str]]) -> list[str]:
    before, dots, after = output.partition("...")
    if not dots:
        return list(output)
    spread = {label for axes in labels for label in axes if label.startswith(".")}
    return [*before, *sorted(spread, key=lambda label: -int(label[1:])), *after]


def _sum_out(reading: Reading, x: Tensor, labels: list[str], gone: list[str]) -> tuple[Tensor, list[str]]:
    """The sum over axes that neither the other operand nor the result has."""
    if not gone:
        return x, labels
    axes = reading.constant([labels.index(label) for label in gone], np.int32)
    return reading.emit("SUM", x, axes, keep_dims=False), [label for label in labels if label not in gone]


def _arranged(reading: Reading, x: Tensor, labels: Sequence[str], wanted: Sequence[str]) -> Tensor:
    if list(labels) == list(wanted):
        return x
    return reading.transpose(x, *(labels.index(label) for label in wanted))


def _product(reading: Reading, operands: list[Tensor], labels: list[list[str]], wanted: list[str]) -> Tensor:
    a, b = operands
    in_a, in_b = labels
    batch = [label for label in wanted if label in in_a and label in in_b]
    summed = [label for label in in_a if label in in_b and label not in wanted]
    rows = [label for label in in_a if label not in in_b]
    columns = [label for label in in_b if label not in in_a]
    if not summed:
        return _outer(reading, operands, labels, wanted)
    if b.is_constant and not batch:
        return _dense(reading, a, b, labels, rows, columns, summed, wanted)
    if a.is_constant and not batch:
        return _dense(reading, b, a, labels[::-1], columns, rows, summed, wanted)
    sizes = {label: size(reading, x, axis) for x, axes in ((a, in_a), (b, in_b)) for axis, label in enumerate(axes)}
    left = _arranged(reading, a, in_a, [*batch, *rows, *summed])
    right = _arranged(reading, b, in_b, [*batch, *summed, *columns])
    # Batch axes of size 1 broadcast in both BATCH_MATMUL and einsum, so they need no merging.
    left = merge_axes(reading, left, [1] * len(batch) + [len(rows), len(summed)])
    right = merge_axes(reading, right, [1] * len(batch) + [len(summed), len(columns)])
    product = reading.emit("BATCH_MATMUL", left, right, adj_x=False, adj_y=False)
    computed = [*batch, *rows, *columns]
    if len(rows) != 1 or len(columns) != 1:
        product = reshape(reading, product, [sizes[label] for label in computed])
    return _arranged(reading, product, computed, wanted)


def _dense(
    reading: Reading,
    x: Tensor,
    weights: Tensor,
    labels: Sequence[Sequence[str]],
    rows: list[str],
    columns: list[str],
    summed: list[str],
    wanted: list[str],
) -> Tensor:
    """x times constant weights that share no axis of the result: a FULLY_CONNECTED over x's other axes."""
    in_x, in_weights = labels
    sizes = [size(reading, x, in_x.index(label)) for label in rows]
    shape = reading.shape(weights)
    assert shape is not None
    outputs = [shape[in_weights.index(label)] for label in columns]
    matrix = merge_axes(
        reading, _arranged(reading, weights, in_weights, [*columns, *summed]), [len(columns), len(summed)]
    )
    flat = merge_axes(reading, _arranged(reading, x, in_x, [*rows, *summed]), [1] * len(rows) + [len(summed)])
    product = fully_connected(reading, flat, matrix)
    if len(columns) != 1:
        product = reshape(reading, product, [*sizes, *outputs])
    return _arranged(reading, product, [*rows, *columns], wanted)


def _outer(reading: Reading, operands: list[Tensor], labels: list[list[str]], wanted: list[str]) -> Tensor:
    """Nothing to sum over: a multiplication with broadcasting."""
    aligned = []
    for x, axes in zip(operands, labels, strict=True):
        here = [label for label in wanted if label in axes]
        x = _arranged(reading, x, axes, here)
        sizes = [size(reading, x, here.index(label)) if label in here else 1 for label in wanted]
        aligned.append(x if len(here) == len(wanted) else reshape(reading, x, sizes))
    return reading.emit("MUL", *aligned)

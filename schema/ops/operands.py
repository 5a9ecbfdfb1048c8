"""What ops that take shapes, axes and sizes as operands share: reading, checking, counting with unknown dims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from schema.graph import Shape, TensorType
from schema.ops.base import Arrays, require
from schema.ops.dtypes import INTEGERS, require_dtype

MAX_OUTPUTS = 1 << 16


def product(dims: Iterable[int]) -> int:
    """The product as a Python int, which cannot overflow."""
    return math.prod(int(dim) for dim in dims)


def elements(tensor: TensorType) -> int | None:
    """How many elements a tensor has; None where an unknown dim decides."""
    if tensor.shape is None:
        return None
    known = product(dim for dim in tensor.shape if dim is not None)
    return known if known == 0 or None not in tensor.shape else None


def require_one_element(tensor: TensorType, what: str) -> None:
    require(elements(tensor) in (1, None), f"{what} is {tensor}, not one number")


def unknown(rank: int | None) -> Shape | None:
    return None if rank is None else (None,) * rank


def merge(a: int | None, b: int | None, what: str) -> int | None:
    """One dim of which two inputs speak: what is known of it. ShapeError where they contradict each other."""
    require(a is None or b is None or a == b, f"{what}: {a} and {b} differ")
    return b if a is None else a


def normalize_axis(axis: int, rank: int) -> int:
    """An axis of [-rank, rank) as one of [0, rank)."""
    require(-rank <= axis < rank, f"axis {axis} is outside of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def require_outputs(count: int) -> None:
    """A number of outputs that a node may have: it comes from the file, and each takes memory before any is checked."""
    require(0 < count <= MAX_OUTPUTS, f"{count} outputs; there may be 1 to {MAX_OUTPUTS}")


def steps(first: int, last: int, step: int) -> int:
    """How many integers range(first, last, step) has; `len` overflows beyond 2**63."""
    return max(0, -((first - last) // step))


def length(operand: TensorType, what: str) -> int | None:
    """How many integers a 1-D (or scalar: 1) operand holds, None where its shape does not say."""
    if operand.shape is None:
        return None
    require(len(operand.shape) <= 1, f"{what} is {operand}, not 1-D")
    return operand.shape[0] if operand.shape else 1


def integers(op: str, inputs: Sequence[TensorType], values: Arrays, index: int, what: str) -> list[int] | None:
    """The integers of a scalar or 1-D operand, None where they are unknown."""
    operand = inputs[index]
    require_dtype(op, what, operand, INTEGERS)
    length(operand, what)
    value = values[index]
    return None if value is None else [int(v) for v in np.ravel(value)]


def integer(op: str, inputs: Sequence[TensorType], values: Arrays, index: int, what: str) -> int | None:
    """The integer of an operand of one element, None where it is unknown."""
    require_one_element(inputs[index], what)
    found = integers(op, inputs, values, index, what)
    return None if found is None else found[0]


def pairs(op: str, inputs: Sequence[TensorType], values: Arrays, index: int, what: str) -> list[tuple[int, int]] | None:
    """An operand of shape (n, 2), such as paddings, as n pairs (before, after) >= 0; None where it is unknown."""
    operand = inputs[index]
    require_dtype(op, what, operand, INTEGERS)
    if operand.shape is not None:
        require(len(operand.shape) == 2 and operand.shape[1] in (2, None), f"{what} are {operand}, not n x 2")
    value = values[index]
    if value is None:
        return None
    found = [(int(before), int(after)) for before, after in value]
    require(all(b >= 0 and a >= 0 for b, a in found), f"{what} {found} are negative")
    return found

"""What ops that take shapes, axes and sizes as operands share: reading and checking them, counting with unknown dims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from schema.errors import UnsupportedError
from schema.graph import Shape, TensorType
from schema.ops.base import Arrays, Types, require

FLOATS = frozenset(np.dtype(t) for t in ("float16", "float32", "float64"))
INTEGERS = frozenset(np.dtype(t) for t in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split())
INDICES = frozenset(np.dtype(t) for t in ("int32", "int64"))
QUANTIZED = frozenset(np.dtype(t) for t in ("int8", "uint8", "int16"))
ALL = FLOATS | INTEGERS | {np.dtype(bool)}


def check_dtype(tensor: TensorType, allowed: Iterable[np.dtype] = ALL, what: str = "the input") -> None:
    """UnsupportedError where the op has no meaning for the tensor's dtype."""
    if tensor.dtype not in allowed:
        names = ", ".join(sorted(str(t) for t in allowed))
        raise UnsupportedError(f"{what} is {tensor.dtype}, not one of {names}")


def check_same_dtype(tensors: Sequence[TensorType]) -> None:
    for tensor in tensors[1:]:
        require(tensor.dtype == tensors[0].dtype, f"inputs are {tensors[0].dtype} and {tensor.dtype}, not of one dtype")


def product(dims: Iterable[int | None]) -> int | None:
    """The number of elements as a Python int, which cannot overflow; None where a dim is unknown (and none is 0)."""
    total, known = 1, True
    for dim in dims:
        if dim is None:
            known = False
        else:
            total *= int(dim)
    return total if known or total == 0 else None


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


def length(operand: TensorType, what: str) -> int | None:
    """How many integers a 1-D (or scalar: 1) operand holds, None where its shape does not say."""
    if operand.shape is None:
        return None
    require(len(operand.shape) <= 1, f"{what} is {operand}, not 1-D")
    return operand.shape[0] if operand.shape else 1


def integers(inputs: Types, values: Arrays, index: int, what: str) -> list[int] | None:
    """The integers of a scalar or 1-D operand, None where they are unknown."""
    operand = inputs[index]
    check_dtype(operand, INDICES, what)
    length(operand, what)
    value = values[index]
    return None if value is None else [int(v) for v in np.ravel(value)]


def integer(inputs: Types, values: Arrays, index: int, what: str) -> int | None:
    """The integer of an operand of one element, None where it is unknown."""
    require(length(inputs[index], what) in (1, None), f"{what} is {inputs[index]}, not one integer")
    found = integers(inputs, values, index, what)
    return None if found is None else found[0]


def pairs(inputs: Types, values: Arrays, index: int, what: str) -> list[tuple[int, int]] | None:
    """An operand of shape (n, 2), such as paddings, as n pairs (before, after) >= 0; None where it is unknown."""
    operand = inputs[index]
    check_dtype(operand, INDICES, what)
    if operand.shape is not None:
        require(len(operand.shape) == 2 and operand.shape[1] in (2, None), f"{what} are {operand}, not n x 2")
    value = values[index]
    if value is None:
        return None
    found = [(int(before), int(after)) for before, after in value]
    require(all(b >= 0 and a >= 0 for b, a in found), f"{what} {found} are negative")
    return found

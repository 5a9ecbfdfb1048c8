"""What ops that go through time share: activations, sequences, and the state that they begin and end with.

A state is an operand and an output of its own, so that an op stays a function: the same inputs give the same outputs.
A state left out is zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from schema.graph import TensorType
from schema.ops.base import element_count, require
from schema.ops.dtypes import FLOATS, require_dtype, require_same_dtype
from schema.ops.operands import merge


def logistic(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "TANH": np.tanh,
    "LOGISTIC": logistic,
}


def infer_dtype(op: str, inputs: Sequence[TensorType | None]) -> np.dtype:
    """The one float dtype of all operands."""
    given = [tensor for tensor in inputs if tensor is not None]
    require_dtype(op, "input", given[0], FLOATS)
    require_same_dtype(op, *given)
    return given[0].dtype


def dims(tensor: TensorType | None, rank: int, what: str) -> tuple[int | None, ...]:
    """The tensor's dimensions, None for those that are unknown; for an operand left out all are."""
    if tensor is None or tensor.shape is None:
        return (None,) * rank
    require(len(tensor.shape) == rank, f"{what} are {tensor}, not of rank {rank}")
    return tensor.shape


def agree(what: str, *sizes: int | None) -> int | None:
    """What is known of one size that several operands tell. ShapeError where they contradict each other."""
    known: int | None = None
    for size in sizes:
        known = merge(known, size, what)
    return known


def sequence_dims(x: TensorType, time_major: bool) -> tuple[int | None, int | None, int | None]:
    """(batch, time, features) of a sequence."""
    first, second, features = dims(x, 3, "sequences")
    return (second, first, features) if time_major else (first, second, features)


def macs(x: TensorType, weights: Sequence[TensorType | None]) -> int:
    """Multiply-accumulates of a sequence x, each of whose steps meets all `weights` once."""
    first, second, _ = x.shape or (0, 0, 0)
    return (first or 0) * (second or 0) * sum(element_count(w) for w in weights if w is not None)


def sequence_shape(batch: int | None, time: int | None, features: int | None, time_major: bool):
    return (time, batch, features) if time_major else (batch, time, features)


def through_time(x: np.ndarray, time_major: bool) -> np.ndarray:
    """The sequence as (time, batch, features) in float64; the inverse is the same."""
    return (x if time_major else np.swapaxes(x, 0, 1)).astype(np.float64)


def as_sequence(steps: list[np.ndarray], x: np.ndarray, features: int, time_major: bool) -> np.ndarray:
    """The results of all steps as a sequence of x's dtype."""
    batch = x.shape[1 if time_major else 0]
    stacked = np.stack(steps) if steps else np.zeros((0, batch, features))
    return np.ascontiguousarray(stacked if time_major else np.swapaxes(stacked, 0, 1), x.dtype)


def initial(state: np.ndarray | None, batch: int, size: int) -> np.ndarray:
    return np.zeros((batch, size)) if state is None else state.astype(np.float64)

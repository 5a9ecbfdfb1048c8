"""What ops that run other graphs have in common: operands that fit a graph's inputs, and the types of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from schema import inference
from schema.errors import ExecutionError, ShapeError, XnnError
from schema.graph import Graph, Shape, TensorType
from schema.ops.base import Types, require

BOOL = np.dtype(np.bool_)


def check_alike(what: str, a: Graph, b: Graph) -> None:
    """Raise ShapeError unless two graphs take operands of the same dtypes, and neither has a state."""
    require(not a.state and not b.state, f"{what}: a graph that nodes run has no state of its own")
    require(len(a.inputs) == len(b.inputs), f"{what}: {len(a.inputs)} and {len(b.inputs)} inputs")
    check_dtypes(f"{what}: input", [t.dtype for t in a.inputs], [t.dtype for t in b.inputs])


def check_dtypes(what: str, a: Sequence[np.dtype], b: Sequence[np.dtype]) -> None:
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        require(x == y, f"{what} {index} is {x} in one and {y} in the other")


def narrowed(given: Shape | None, declared: Shape | None, what: str) -> Shape | None:
    """What two descriptions of one shape say together. Raises ShapeError where they contradict each other."""
    if given is None or declared is None:
        return declared if given is None else given
    fits = len(given) == len(declared) and all(None in (x, y) or x == y for x, y in zip(given, declared, strict=True))
    require(fits, f"{what} has shape {given}, not {declared}")
    return tuple(y if x is None else x for x, y in zip(given, declared, strict=True))


def widened(a: Shape | None, b: Shape | None) -> Shape | None:
    """What holds of two shapes: dimensions in which they differ are unknown."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def called(what: str, graph: Graph, operands: Types) -> list[TensorType]:
    """Types of the outputs of a graph that runs on operands of these types."""
    count = len(graph.inputs)
    require(len(operands) == count, f"{what}: {len(operands)} operands for its {count} inputs")
    shapes: list[Any] = []
    for index, (operand, tensor) in enumerate(zip(operands, graph.inputs, strict=True)):
        if operand is None:
            raise ShapeError(f"{what}: operand {index} is left out")
        require(operand.dtype == tensor.dtype, f"{what}: operand {index} is {operand.dtype}, not {tensor.dtype}")
        shapes.append(narrowed(operand.shape, tensor.shape, f"{what}: operand {index}"))
    try:
        types = inference.infer(graph, shapes).types
    except XnnError as error:
        raise type(error)(f"{what}: {error}") from None
    return [types[tensor] for tensor in graph.outputs]


def check_condition(kind: TensorType | None, what: str) -> None:
    """Raise ShapeError for what is not one truth value."""
    single = kind is not None and (kind.shape is None or all(dim in (1, None) for dim in kind.shape))
    require(kind is not None and kind.dtype == BOOL and single, f"{what} is {kind}, not one truth value")


def truth(array: np.ndarray | None) -> bool:
    """The value of a condition, which may have any number of axes."""
    require(array is not None and array.size == 1, "the condition is not one truth value")
    return bool(np.ravel(array)[0])  # type: ignore[arg-type]


def check_carried(body: Graph, arrays: Sequence[np.ndarray]) -> None:
    """Raise ExecutionError for a result of a loop's body that is no operand of it: sizes that only running told."""
    for index, (array, tensor) in enumerate(zip(arrays, body.inputs, strict=True)):
        try:
            narrowed(array.shape, tensor.shape, f"output {index} of the loop's body")
        except ShapeError as error:
            raise ExecutionError(str(error)) from None

"""A model's inputs and outputs as its users see them, and the check of what they pass in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schema.errors import InputError
from schema.graph import Graph, Shape, Tensor


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: dims of None may be any size. scale and zero_point are None for tensors that are not
    quantized.
    """

    name: str
    shape: Shape | None
    dtype: np.dtype
    scale: float | None = None
    zero_point: int | None = None

    def __str__(self) -> str:
        shape = "?" if self.shape is None else "(" + ", ".join("?" if d is None else str(d) for d in self.shape) + ")"
        quantized = "" if self.scale is None else f", scale {self.scale:.6g}, zero point {self.zero_point}"
        return f"{self.name}: {self.dtype} {shape}{quantized}"


def describe(name: str, tensor: Tensor, shape: Shape | None) -> TensorInfo:
    q = tensor.quantization
    if q is None:
        return TensorInfo(name, shape, tensor.dtype)
    return TensorInfo(name, shape, tensor.dtype, float(q.scale[0]), int(q.zero_point[0]))


def bind(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> list[np.ndarray]:
    """The arrays of a call in the graph's order, checked.

    `args` is one mapping by name, one sequence for a model of several inputs, or an array for each input. Python
    lists and numbers are taken as the input's dtype; an array's dtype must be right already, since a silent cast
    hides a missing rescaling.
    Raises InputError that names the input and what it should be.
    """
    names = graph.argument_names
    if len(args) == 1 and isinstance(args[0], Mapping):
        given = dict(args[0])
    else:
        values = list(args)
        if len(values) == 1 and len(names) > 1 and isinstance(values[0], list | tuple):
            values = list(values[0])
        if len(values) > len(names):
            raise InputError(f"{len(values)} arrays for the {len(names)} inputs {names}")
        given = dict(zip(names, values, strict=False))
    given.update(kwargs or {})
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise InputError(f"no input is called {', '.join(map(repr, unknown))}: there are {names}")
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"input {', '.join(map(repr, missing))} is missing: the model takes {names}")
    return [check(name, tensor, given[name]) for name, tensor in zip(names, graph.arguments, strict=True)]


def check(name: str, tensor: Tensor, value: Any) -> np.ndarray:
    """`value` as an array of the input's dtype and a shape that it accepts."""
    expected = describe(name, tensor, tensor.shape)
    if isinstance(value, list | tuple | int | float):
        try:
            array = np.asarray(value, tensor.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise InputError(f"input {expected}: {error}") from None
    else:
        array = np.asarray(value)
    if array.dtype != tensor.dtype:
        raise InputError(f"input {expected}: the array is {array.dtype}; pass x.astype('{tensor.dtype}')")
    if tensor.shape is not None:
        fits = array.ndim == len(tensor.shape) and all(
            d is None or d == n for d, n in zip(tensor.shape, array.shape, strict=True)
        )
        if not fits:
            hint = ""
            if array.ndim + 1 == len(tensor.shape):
                hint = "; a single sample needs a batch axis: x[None]"
            raise InputError(f"input {expected}: the array has shape {array.shape}{hint}")
    if array.size == 0:
        raise InputError(f"input {expected}: the array of shape {array.shape} is empty")
    return array

"""Making and reading constant tensors, as rewrites need them."""

from __future__ import annotations

import math

import numpy as np

from schema.graph import Constant, Node, Tensor

DISTINCT = 256
"""Up to so many different values are a codebook."""
SAMPLE = 4096


def constant(name: str, array: np.ndarray) -> Tensor:
    """A constant tensor of the array's dtype and shape."""
    return Tensor.from_array(name, np.asarray(array))


def like(tensor: Tensor, array: np.ndarray) -> Tensor:
    """A constant that holds a constant's elements in another shape or order. It keeps the quantization."""
    return Tensor.from_array(tensor.name, np.ascontiguousarray(array), tensor.quantization)


def varies_by_channel(tensor: Tensor | None) -> bool:
    """Whether an axis of the tensor has a scale for each index: it cannot be moved or split."""
    return tensor is not None and tensor.quantization is not None and tensor.quantization.per_channel


def value_of(tensor: Tensor | None) -> np.ndarray | None:
    """The value of a constant, None for a tensor that is computed or left out."""
    return None if tensor is None else tensor.value


def is_float(tensor: Tensor | None) -> bool:
    """Whether the tensor holds plain real numbers: arithmetic on integers that stand for them is not rewritten."""
    return tensor is not None and tensor.dtype.kind == "f" and tensor.quantization is None


def float_value(tensor: Tensor | None) -> np.ndarray | None:
    """The value of a constant of plain real numbers, else None."""
    return tensor.value if tensor is not None and is_float(tensor) else None


def scalar(tensor: Tensor | None) -> float | None:
    """The only element of a real constant, else None."""
    value = float_value(tensor)
    return float(value.reshape(())) if value is not None and value.size == 1 else None


def uniform(tensor: Tensor | None) -> float | None:
    """What every element of a real constant is, None where they differ."""
    value = float_value(tensor)
    if value is None or not value.size or not (value == value.flat[0]).all():
        return None
    return float(value.flat[0])


def near(a: float, b: float) -> bool:
    """Equal up to float32 rounding: how constants of a formula are recognised."""
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def operand(node: Node) -> tuple[Tensor, np.ndarray] | None:
    """(computed, constant's value) of a binary node on real numbers, in either order; None unless one is constant."""
    a, b = node.inputs
    for x, c in ((a, b), (b, a)):
        value = float_value(c)
        if value is not None and x is not None and not x.is_constant and is_float(x):
            return x, value
    return None


def per_channel(value: np.ndarray, rank: int, channels: int) -> np.ndarray | None:
    """What a constant holds for each channel of a tensor (..., channels) of that rank: (channels,).

    None where it varies along another axis or would change the tensor's shape.
    """
    if value.ndim > rank or value.size not in (1, channels) or (value.size > 1 and value.shape[-1] != channels):
        return None
    return np.broadcast_to(value.reshape(-1), (channels,))


def has_codebook(stored: Constant) -> bool:
    """Whether a sample of the stored values has few distinct numbers, which scaling elements would multiply."""
    values = np.asarray(stored.values).reshape(-1)
    step = max(1, values.size // SAMPLE)
    sample = values[: step * SAMPLE : step]
    return bool(np.unique(sample).size <= min(DISTINCT, sample.size // 4))

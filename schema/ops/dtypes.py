"""Which dtypes ops have a meaning for, and the check that every `infer` makes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from schema.errors import ShapeError, UnsupportedError
from schema.graph import TensorType
from schema.quantization import Quantization


def _set(*types: type) -> frozenset[np.dtype]:
    return frozenset(np.dtype(t) for t in types)


FLOATS = _set(np.float16, np.float32, np.float64)
INTEGERS = _set(np.int32, np.int64)
"""Integers that stand for themselves: indices, shapes, counts."""
QUANTIZED = _set(np.int8)
"""Integers that stand for scale * (integer - zero_point)."""
WIDE = _set(np.int16)
"""As QUANTIZED, with zero point 0: the activations of TFLite's 16x8, beside int8 weights."""
LEGACY = _set(np.uint8)
"""As QUANTIZED, in old models: for the few ops that do not round as they do with int8."""
AFFINE = _set(np.int8, np.uint8, np.int16)
"""All that QUANTIZE makes and DEQUANTIZE reads; ops that only move such integers take them as well."""
ACCUMULATORS = _set(np.int32)
"""What the bias of a quantized linear op may be."""
WIDE_ACCUMULATORS = _set(np.int32, np.int64)
"""The same with WIDE activations; it decides how they are requantized."""
BOOL = _set(np.bool_)
ANY = FLOATS | BOOL | _set(*(getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)))


def require_dtype(op: str, what: str, tensor: TensorType, allowed: Collection[np.dtype]) -> None:
    """Raise UnsupportedError unless the tensor's dtype is one of `allowed`."""
    if tensor.dtype not in allowed:
        names = ", ".join(sorted(str(d) for d in allowed))
        raise UnsupportedError(f"{op} has no meaning for {what} {tensor}: its dtype can be {names}")


def require_same_dtype(op: str, *tensors: TensorType) -> None:
    """Raise ShapeError unless all have the first one's dtype."""
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ShapeError(f"{op} takes one dtype, not {tensors[0]} with {tensor}: cast one of them")


def is_quantized(tensor: TensorType) -> bool:
    return tensor.dtype in QUANTIZED or tensor.dtype in WIDE


def per_tensor(op: str, what: str, tensor: TensorType) -> tuple[np.float32, int]:
    """(scale, zero_point) of a tensor quantized as a whole.

    Raises ShapeError where it has none or one per channel, and for int16 with a zero point other than 0.
    """
    quantization = quantized(op, what, tensor)
    if quantization.per_channel:
        raise ShapeError(f"{op} needs one scale for {what} {tensor}, not one per channel")
    if tensor.dtype in WIDE and quantization.zero_point[0] != 0:
        raise ShapeError(f"{op} takes {what} {tensor} with zero point 0, not {quantization.zero_point[0]}")
    return quantization.scale[0], int(quantization.zero_point[0])


def require_output(op: str, output: TensorType, scale: float, zero_point: int) -> None:
    """Raise ShapeError unless the output has the one quantization that the op can give."""
    have_scale, have_zero = per_tensor(op, "output", output)
    if have_zero != zero_point or abs(have_scale - scale) > 1e-3 * scale:
        raise ShapeError(
            f"{op} gives {output.dtype} of scale {scale:g} and zero point {zero_point}, not {output.quantization}"
        )


def quantized(op: str, what: str, tensor: TensorType) -> Quantization:
    """The tensor's quantization. Raises ShapeError where it has none or where its scales do not fit."""
    quantization = tensor.quantization
    if quantization is None:
        raise ShapeError(f"{op} needs a scale for {what} {tensor}: the tensor has no quantization")
    if quantization.per_channel and tensor.shape is not None:
        size, axis = quantization.scale.size, quantization.axis
        if not 0 <= axis < len(tensor.shape) or tensor.shape[axis] not in (None, size):
            raise ShapeError(f"{op}: {size} scales along axis {axis} do not fit {what} {tensor}")
    return quantization

"""A tensor of the file as a schema.Tensor: dtype, shape, quantization, and the value of a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from converter.frontends.tflite.file import File
from converter.frontends.tflite.sparsity import densify
from schema.errors import FormatError, UnsupportedError
from schema.graph import Constant, Shape, Tensor
from schema.inference import MAX_RANK
from schema.quantization import Quantization

DTYPES = {
    name: np.dtype(name.lower())
    for name in "FLOAT16 FLOAT32 FLOAT64 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 BOOL".split()
}
INT4 = "INT4"


def name_of(raw: dict[str, Any], index: int) -> str:
    return raw["name"] or f"tensor {index}"


def read(file: File, raw: dict[str, Any], index: int) -> Tensor:
    """Tensor `index` of a subgraph. Raises FormatError for one that contradicts itself, UnsupportedError for a dtype
    that xnn does not have.
    """
    name = name_of(raw, index)
    place = f"tensor {index} '{name}'"
    data = file.buffer(raw["buffer"], place)
    stored = data is not None and data.size > 0 and not raw["is_variable"]
    dtype = _dtype(raw["type"], stored, place)
    shape = _shape(raw, stored, place)
    tensor = Tensor(name, dtype, shape, _quantization(raw["quantization"], dtype, shape, place))
    if stored:
        tensor.constant = Constant(_values(raw, data, dtype, shape, place))
    return tensor


def _dtype(kind: str, stored: bool, place: str) -> np.dtype:
    if kind == INT4 and stored:
        return DTYPES["INT8"]  # the same integers; the file stores them in as few bits again
    if kind not in DTYPES:
        raise UnsupportedError(f"{place}: dtype {kind} is not supported")
    return DTYPES[kind]


def _shape(raw: dict[str, Any], stored: bool, place: str) -> Shape:
    """The declared shape; sizes that the signature leaves open are None."""
    shape = [] if raw["shape"] is None else raw["shape"].tolist()
    signature = [] if raw["shape_signature"] is None else raw["shape_signature"].tolist()
    if len(shape) > MAX_RANK:
        raise FormatError(f"{place}: {len(shape)} dimensions are more than {MAX_RANK}")
    if min(shape, default=0) < (0 if stored else -1) or min(signature, default=0) < -1:
        raise FormatError(f"{place}: shape {shape}, signature {signature}")
    if stored or len(signature) != len(shape):
        signature = shape
    return tuple(None if -1 in (size, open_size) else size for size, open_size in zip(shape, signature, strict=True))


def _quantization(raw: dict[str, Any] | None, dtype: np.dtype, shape: Shape, place: str) -> Quantization | None:
    """Scales of integers; what floats are said to have been quantized with does not change them."""
    if raw is None or dtype.kind not in "iu":
        return None
    if raw["details_type"]:
        raise UnsupportedError(f"{place}: quantization other than by scale and zero point is not supported")
    scale, zero_point, axis = raw["scale"], raw["zero_point"], raw["quantized_dimension"]
    if scale is None or not scale.size:
        return None
    zero_point = np.zeros(1, np.int64) if zero_point is None or not zero_point.size else zero_point
    if zero_point.size not in (1, scale.size):
        raise FormatError(f"{place}: {zero_point.size} zero points for {scale.size} scales")
    if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
        raise FormatError(f"{place}: {scale.size} scales along axis {axis} of shape {shape}")
    limits = np.iinfo(dtype)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise FormatError(f"{place}: a scale that is not finite and greater than 0")
    if (zero_point < limits.min).any() or (zero_point > limits.max).any():
        raise FormatError(f"{place}: a zero point outside of {dtype}")
    return Quantization(scale, zero_point, axis if scale.size > 1 else 0)


def _values(raw: dict[str, Any], data: np.ndarray, dtype: np.dtype, shape: Shape, place: str) -> np.ndarray:
    count = math.prod(shape)
    if raw["sparsity"] is not None:
        if raw["type"] == INT4:
            raise UnsupportedError(f"{place}: sparse tensors of {INT4} are not supported")
        return densify(raw["sparsity"], _elements(data, dtype, place), shape, place)
    if raw["type"] == INT4:
        _require_size(data, (count + 1) // 2, shape, place)
        return _nibbles(data)[:count].reshape(shape)
    _require_size(data, count * dtype.itemsize, shape, place)
    return _elements(data, dtype, place).reshape(shape)


def _require_size(data: np.ndarray, size: int, shape: Shape, place: str) -> None:
    if data.size != size:
        raise FormatError(f"{place}: {data.size} bytes for shape {shape}, which takes {size}")


def _elements(data: np.ndarray, dtype: np.dtype, place: str) -> np.ndarray:
    if data.size % dtype.itemsize:
        raise FormatError(f"{place}: {data.size} bytes are no whole number of {dtype}")
    if dtype == np.bool_:
        return data != 0
    return data.view(dtype) if data.flags.aligned else data.copy().view(dtype)


def _nibbles(data: np.ndarray) -> np.ndarray:
    """Signed 4-bit integers, the lower half of each byte first, as int8."""
    halves = np.stack([data << 4, data & 0xF0], axis=-1).reshape(-1).view(np.int8)
    return halves >> 4

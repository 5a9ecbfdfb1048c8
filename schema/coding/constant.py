"""A constant to streams and back."""

from __future__ import annotations

import numpy as np

from schema.coding.streams import EncodedConstant, Stream
from schema.errors import FormatError
from schema.graph import Constant


def encode(constant: Constant, dtype: np.dtype) -> EncodedConstant:
    """The streams of a constant of a tensor of that dtype."""
    if constant.channel_scale is not None:
        values = constant.dense(dtype)
    else:
        values = np.ascontiguousarray(constant.values)
    return EncodedConstant(values.dtype, Stream(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()))


def decode(encoded: EncodedConstant, shape: tuple[int, ...], dtype: np.dtype) -> Constant:
    """The constant of a tensor of that shape and dtype. Raises FormatError for streams that do not fit."""
    count = 1
    for dim in shape:
        count *= dim
    if len(encoded.values.data) != count * encoded.dtype.itemsize:
        raise FormatError(f"{len(encoded.values.data)} bytes for {count} values of {encoded.dtype}")
    return Constant(np.frombuffer(encoded.values.data, encoded.dtype).reshape(shape))

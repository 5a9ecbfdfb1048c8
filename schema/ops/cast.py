"""CAST: x -> the same numbers in another dtype (tf.cast).

Floats to integers: towards zero. What does not fit saturates and NaN becomes 0, where C leaves it open. Integers to
narrower integers wrap around. To bool: whether it is not zero. From bool: 0 or 1.
"""

from __future__ import annotations

import numpy as np

from schema.errors import UnsupportedError
from schema.graph import TensorType
from schema.ops.attributes import DTypeAttributes
from schema.ops.base import Op
from schema.ops.dtypes import ANY, require_dtype


class Cast(Op):
    name = "CAST"
    Attributes = DTypeAttributes

    @classmethod
    def check(cls, attributes):
        if attributes.dtype not in ANY:
            raise UnsupportedError(f"a cast to {attributes.dtype}")

    @classmethod
    def infer(cls, attributes, inputs, values):
        require_dtype(cls.name, "input", inputs[0], ANY)
        return [TensorType(inputs[0].shape, attributes.dtype)]

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        return [cast(arrays[0], attributes.dtype)]


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if x.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
        inside = (x > float(info.min)) & (
            x < float(info.max)
        )  # int64's maximum is no float64: hence the bounds by hand
        limits = np.where(x < 0, info.min, info.max).astype(dtype)
        return np.where(inside, np.where(inside, x, 0).astype(dtype), limits)
    with np.errstate(over="ignore"):  # float64 beyond float32 or float16 is infinite
        return x.astype(dtype)

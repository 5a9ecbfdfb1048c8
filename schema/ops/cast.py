"""CAST: x -> the same numbers in another dtype (tf.cast).

Floats to integers: towards zero; what does not fit saturates and NaN becomes the greatest integer, as LiteRT does it
(TensorFlow leaves it to the machine). Integers to narrower integers wrap around. To bool: whether it is not zero.
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
    """x in another dtype, by the rules above."""
    if x.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        whole = np.trunc(x.astype(np.float64))
        # In float64 the least integer and the greatest one + 1 are exact, the greatest one of int64 is not.
        inside = (whole >= float(info.min)) & (whole < float(info.max + 1))
        limits = np.where(whole < 0, dtype.type(info.min), dtype.type(info.max))
        return np.where(inside, np.where(inside, whole, 0).astype(dtype), limits)
    with np.errstate(over="ignore"):  # beyond the range of a narrower float: infinite
        return x.astype(dtype)

"""TensorFlow's dtypes and the schema's. Real numbers of every width are computed as float32: mixed precision speeds
training up.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from schema.errors import UnsupportedError

FLOATS = {tf.float16, tf.bfloat16, tf.float32, tf.float64}
OTHERS = {tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64, tf.bool}
BY_ENUM = {dtype.as_datatype_enum: np.dtype(np.float32) for dtype in FLOATS}
BY_ENUM |= {dtype.as_datatype_enum: np.dtype(dtype.as_numpy_dtype) for dtype in OTHERS}


def from_enum(value: int) -> np.dtype:
    """The dtype in which values of a TensorFlow DataType are computed. Raises UnsupportedError for strings,
    resources, complex.
    """
    try:
        return BY_ENUM[value]
    except KeyError:
        raise UnsupportedError(
            f"dtype {tf.dtypes.as_dtype(value).name} is not supported: only numbers and bool are"
        ) from None


def from_array(array: np.ndarray) -> np.ndarray:
    """The array in the dtype in which it is computed."""
    array = np.asarray(array)
    return np.ascontiguousarray(array, from_enum(tf.dtypes.as_dtype(array.dtype).as_datatype_enum)).reshape(array.shape)

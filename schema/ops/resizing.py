"""What RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR share: shapes, and the scale from output to input pixels."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from schema.graph import TensorType
from schema.ops.attributes import ResizeAttributes
from schema.ops.base import Arrays, require
from schema.ops.dtypes import require_dtype
from schema.ops.operands import integers, length


def infer_resized(
    op: str, inputs: Sequence[TensorType], values: Arrays, allowed: Collection[np.dtype]
) -> list[TensorType]:
    """(x NHWC, size int[2]) -> NHWC."""
    x = inputs[0]
    require_dtype(op, "input", x, allowed)
    require(length(inputs[1], "size") in (2, None), f"size is {inputs[1]}, not height and width")
    size = integers(op, inputs, values, 1, "size") or (None, None)
    require(all(s is None or s > 0 for s in size), f"a size of {size}")
    if x.shape is None:
        return [TensorType((None, *size, None), x.dtype)]
    require(x.rank == 4, f"the input is {x}, not NHWC")
    require(0 not in x.shape[1:3], f"nothing to resize in {x}")
    return [TensorType((x.shape[0], *size, x.shape[3]), x.dtype)]


def pixel_scale(attributes: ResizeAttributes, size: int, target: int) -> np.float32:
    """Input pixels for each output pixel."""
    if attributes.align_corners and target > 1:
        return np.float32(size - 1) / np.float32(target - 1)
    return np.float32(size) / np.float32(target)

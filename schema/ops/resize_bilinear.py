"""RESIZE_BILINEAR: (x NHWC, size int[2]) -> NHWC of that height and width (tf.compat.v1.image.resize_bilinear).

int8 and int16: positions in 10-bit fixed point, as ResizeBilinearInteger of
tensorflow/lite/kernels/internal/reference/resize_bilinear.h; uint8 in float32, rounded by adding a half.
"""

from __future__ import annotations

import numpy as np

from schema.ops.attributes import ResizeAttributes
from schema.ops.base import Op, require
from schema.ops.dtypes import AFFINE, FLOATS
from schema.ops.resizing import infer_resized, pixel_scale

ONE = 1 << 10


class ResizeBilinear(Op):
    name = "RESIZE_BILINEAR"
    Attributes = ResizeAttributes
    inputs = (2, 2)

    @classmethod
    def check(cls, attributes):
        require(
            not (attributes.align_corners and attributes.half_pixel_centers),
            "align_corners and half_pixel_centers exclude each other",
        )

    @classmethod
    def infer(cls, attributes, inputs, values):
        return infer_resized(cls.name, inputs, values, FLOATS | AFFINE)

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        height, width = (int(s) for s in arrays[1])
        if x.dtype in (np.int8, np.int16):
            return [resize_integer(attributes, x, height, width)]
        working = np.float64 if x.dtype == np.float64 else np.float32
        y0, y1, fy = neighbours(attributes, x.shape[1], height, working)
        x0, x1, fx = neighbours(attributes, x.shape[2], width, working)
        result = blend(x.astype(working), (y0, y1, fy), (x0, x1, fx), working(1))
        if x.dtype == np.uint8:
            result = result + np.float32(0.5)
        return [result.astype(x.dtype)]


def blend(image: np.ndarray, rows: tuple, columns: tuple, one) -> np.ndarray:
    """The weighted sum of four neighbours, in the order in which TFLite adds them."""
    (y0, y1, fy), (x0, x1, fx) = rows, columns
    fy, fx = fy[:, None, None], fx[:, None]
    y0, y1 = y0[:, None], y1[:, None]
    return (
        image[:, y0, x0] * (one - fy) * (one - fx)
        + image[:, y1, x0] * fy * (one - fx)
        + image[:, y0, x1] * (one - fy) * fx
        + image[:, y1, x1] * fy * fx
    )


def neighbours(
    attributes: ResizeAttributes, size: int, target: int, dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lower input index, upper input index, how far from the lower one) of each output index."""
    scale = pixel_scale(attributes, size, target)
    position = np.arange(target, dtype=np.float32)
    if attributes.half_pixel_centers:
        position = (position + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        position = position * scale
    lower = np.maximum(np.floor(position), 0).astype(np.int64)
    upper = np.minimum(np.ceil(position), size - 1).astype(np.int64)
    return lower, upper, (position - lower.astype(np.float32)).astype(dtype)


def resize_integer(attributes: ResizeAttributes, x: np.ndarray, height: int, width: int) -> np.ndarray:
    rows = neighbours_integer(attributes, x.shape[1], height)
    columns = neighbours_integer(attributes, x.shape[2], width)
    total = blend(x.astype(np.int64), rows, columns, ONE)
    half = 1 << 19
    # C's division drops the fraction, so the half is added away from zero.
    magnitude = (np.abs(total) + half) >> 20
    return (np.sign(total) * magnitude).astype(x.dtype)


def neighbours_integer(
    attributes: ResizeAttributes, size: int, target: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As neighbours, with the distance in 1/1024."""
    scale = (ONE * size + target // 2) // target
    if attributes.align_corners and target > 1:
        scale = (ONE * (size - 1) + (target - 1) // 2) // (target - 1)
    position = np.arange(target, dtype=np.int64) * scale
    if attributes.half_pixel_centers:
        position = position + scale // 2 - ONE // 2
    lower = np.maximum(np.fix(position / ONE), 0).astype(np.int64)
    upper = np.minimum(np.fix((position + ONE - 1) / ONE), size - 1).astype(np.int64)
    return lower, upper, position - ONE * lower

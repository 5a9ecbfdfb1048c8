"""RESIZE_NEAREST_NEIGHBOR: (x NHWC, size int[2]) -> NHWC (tf.compat.v1.image.resize_nearest_neighbor).

Positions in float32 as GetNearestNeighbor of tensorflow/lite/kernels/internal/reference/resize_nearest_neighbor.h.
"""

from __future__ import annotations

import numpy as np

from schema.fixedpoint import round_half_away
from schema.ops.attributes import ResizeAttributes
from schema.ops.base import Op
from schema.ops.dtypes import ANY
from schema.ops.resizing import infer_resized, pixel_scale


class ResizeNearestNeighbor(Op):
    name = "RESIZE_NEAREST_NEIGHBOR"
    Attributes = ResizeAttributes
    inputs = (2, 2)

    @classmethod
    def infer(cls, attributes, inputs, values):
        return infer_resized(cls.name, inputs, values, ANY)

    @classmethod
    def reference(cls, attributes, arrays, inputs, outputs):
        x = arrays[0]
        height, width = (int(s) for s in arrays[1])
        rows, columns = nearest(attributes, x.shape[1], height), nearest(attributes, x.shape[2], width)
        return [np.ascontiguousarray(x[:, rows[:, None], columns])]


def nearest(attributes: ResizeAttributes, size: int, target: int) -> np.ndarray:
    """Which input row (column) each output row (column) shows."""
    offset = np.float32(0.5 if attributes.half_pixel_centers else 0)
    position = (np.arange(target, dtype=np.float32) + offset) * pixel_scale(attributes, size, target)
    whole = round_half_away(position) if attributes.align_corners else np.floor(position)
    return np.minimum(whole.astype(np.int64), size - 1)

"""Boxes (y, x, y, x) of two opposite corners, and how much they overlap."""

from __future__ import annotations

import numpy as np


def ordered(boxes: np.ndarray) -> np.ndarray:
    """The same boxes with the lower corner first."""
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1)


def areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def intersection_over_union(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of the others, the area it shares with the box over the area that the two cover. Boxes without area
    overlap nothing.
    """
    low, high = np.maximum(others[:, :2], box[:2]), np.minimum(others[:, 2:], box[2:])
    shared = np.maximum(high - low, 0).prod(axis=1)
    area, other_areas = areas(box[np.newaxis])[0], areas(others)
    with np.errstate(all="ignore"):
        result = shared / (area + other_areas - shared)
    return np.where((area > 0) & (other_areas > 0), result, np.float32(0))

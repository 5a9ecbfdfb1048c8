"""Sparse constants made dense (TFLite's SparsityParameters: the format of TACO, Kjolstad et al. 2017).

The tensor's axes, and for blocks as many inner axes as are blocked, are traversed in a stored order. Each is dense
(every index is there) or CSR (segments of a list of indices, one for each position of the axes before it).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schema.errors import FormatError
from schema.graph import Shape

SPARSEST = 256
"""So many positions, at most, for each stored value: a few bytes must not become gigabytes."""
SMALL = 1 << 16
"""Positions that there may be whatever is stored."""


def densify(raw: dict[str, Any], values: np.ndarray, shape: Shape, place: str) -> np.ndarray:
    """The dense tensor. values: the stored elements in the order of traversal."""
    order = _integers(raw["traversal_order"])
    blocked = _integers(raw["block_map"])
    levels = raw["dim_metadata"] or []
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocked))) or len(levels) != len(order):
        raise FormatError(f"{place}: {len(levels)} sparse axes in order {order} for shape {shape}, blocks {blocked}")
    if not all(0 <= axis < rank for axis in blocked) or len(set(blocked)) != len(blocked):
        raise FormatError(f"{place}: blocks along axes {blocked} of shape {shape}")
    limit = SPARSEST * values.size + SMALL
    if math.prod(shape) > limit:
        raise FormatError(f"{place}: {values.size} values are too few for a sparse tensor of shape {shape}")
    block = {axis: _size(levels[order.index(rank + i)], place) for i, axis in enumerate(blocked)}
    # Positions so far: for each, its index along every axis and inner axis.
    indices = np.zeros((1, len(order)), np.int64)
    for axis, level in zip(order, levels, strict=True):
        indices = _expand(indices, axis, level, limit, place)
    if len(indices) != values.size:
        raise FormatError(f"{place}: {values.size} values for {len(indices)} positions")
    for i, axis in enumerate(blocked):
        indices[:, axis] = indices[:, axis] * block[axis] + indices[:, rank + i]
    position = indices[:, :rank]
    if len(position) and not ((position >= 0).all() and (position < np.array(shape)).all()):
        raise FormatError(f"{place}: a sparse index is outside of shape {shape}")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(position.T)] = values
    return dense


def _expand(indices: np.ndarray, axis: int, level: dict[str, Any], limit: int, place: str) -> np.ndarray:
    """Each position with each index that the axis has there."""
    if level["format"] == "DENSE":
        size = _size(level, place)
        if len(indices) * size > limit:
            raise FormatError(f"{place}: {len(indices)} x {size} sparse positions are more than the shape has")
        expanded = np.repeat(indices, size, axis=0)
        expanded[:, axis] = np.tile(np.arange(size), len(indices))
        return expanded
    segments, found = (_vector(level["array_" + name]) for name in ("segments", "indices"))
    if len(segments) != len(indices) + 1 or segments[0] != 0 or segments[-1] != len(found):
        raise FormatError(f"{place}: segments of {len(found)} sparse indices do not fit {len(indices)} rows")
    lengths = np.diff(segments)
    if (lengths < 0).any():
        raise FormatError(f"{place}: segments of sparse indices that go backwards")
    expanded = np.repeat(indices, lengths, axis=0)
    expanded[:, axis] = found
    return expanded


def _size(level: dict[str, Any], place: str) -> int:
    if level["format"] != "DENSE" or level["dense_size"] < 1:
        raise FormatError(f"{place}: a dense axis of size {level['dense_size']}")
    return level["dense_size"]


def _vector(union: tuple[str, dict[str, Any]] | None) -> np.ndarray:
    return np.array(_integers(None if union is None else union[1]["values"]), np.int64)


def _integers(vector: np.ndarray | None) -> list[int]:
    return [] if vector is None else vector.tolist()

"""A linear op as products of matrices: weights (groups, out, columns), inputs (groups, rows, columns).

A row is what the weights meet at one output position. Rows are sampled, since some thousand tell enough of a layer.
"""

from __future__ import annotations

import math

import numpy as np

from converter.linear import LINEAR
from schema.graph import Node
from schema.ops.windows import coordinates, static_output_size

OPS = ("CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples modulo 1 spread evenly


def of_weights(op: str, weights: np.ndarray, groups: int) -> np.ndarray:
    """Weights as matrices; one number for each output channel becomes (groups, out)."""
    if weights.ndim == 1:
        return weights.reshape(groups, -1)
    if op == "DEPTHWISE_CONV_2D":
        return weights.reshape(-1, groups, weights.shape[3] // groups).transpose(1, 2, 0)
    rows = np.moveaxis(weights, LINEAR[op].out_axis, 0)
    return rows.reshape(groups, len(rows) // groups, -1)


def to_weights(op: str, matrices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse of `of_weights`."""
    if op == "DEPTHWISE_CONV_2D":
        return matrices.transpose(2, 0, 1).reshape(shape)
    axis = LINEAR[op].out_axis
    others = shape[:axis] + shape[axis + 1 :]
    return np.moveaxis(matrices.reshape(shape[axis], *others), 0, axis)


def columns(node: Node) -> int:
    """How many numbers each output channel of a linear op is made of."""
    shape = node.inputs[1].shape  # type: ignore[union-attr]
    assert shape is not None
    if node.op == "DEPTHWISE_CONV_2D":
        return math.prod(d or 0 for d in shape[1:3])
    axis = LINEAR[node.op].out_axis
    return math.prod(d or 0 for d in shape[:axis] + shape[axis + 1 :])


def of_input(node: Node, x: np.ndarray, first: int, per_sample: int) -> np.ndarray:
    """Rows at `per_sample` output positions of each sample; `first` is the number of x's first sample.

    Which positions depends on a sample's number only, not on the batch that it came in.
    """
    if node.op == "FULLY_CONNECTED":
        depth = columns(node)
        samples = x.shape[0] if x.size % (x.shape[0] * depth) == 0 else 1
        rows = x.reshape(samples, -1, depth)
        chosen = _positions(first, samples, rows.shape[1], per_sample)
        return rows[np.arange(samples)[:, np.newaxis], chosen].reshape(1, -1, depth)
    shape = node.inputs[1].shape  # type: ignore[union-attr]
    assert shape is not None
    axes, kernel = ("dhw", shape[:3]) if node.op == "CONV_3D" else ("hw", shape[1:3])
    depth = 1 if node.op == "DEPTHWISE_CONV_2D" else shape[3]
    size = static_output_size(node.attributes, axes, x.shape[1:-1], kernel)
    chosen = _positions(first, len(x), math.prod(size), per_sample)
    taps_of_axes = coordinates(node.attributes, axes, x.shape[1:-1], kernel, size)
    where, inside = [], np.ones((), bool)
    for i, (taps, at) in enumerate(zip(taps_of_axes, np.unravel_index(chosen, size), strict=True)):
        along = [-1 if axis == i else 1 for axis in range(len(axes))]
        where.append(taps[at].reshape(*chosen.shape, *along))
        inside = inside & (where[i] >= 0) & (where[i] < x.shape[1 + i])
    sample = np.arange(len(x)).reshape(-1, *[1] * (1 + len(axes)))
    windows = x[(sample, *(np.where(inside, place, 0) for place in where))] * inside[..., np.newaxis]
    taps = windows.reshape(chosen.size, math.prod(kernel), -1, depth)  # rows, taps, groups, channels of a group
    return taps.transpose(2, 0, 1, 3).reshape(taps.shape[2], chosen.size, -1)


def _positions(first: int, samples: int, positions: int, count: int) -> np.ndarray:
    """(samples, count) of [0, positions), spread evenly over a sample and differently for each."""
    if count >= positions:
        return np.broadcast_to(np.arange(positions), (samples, positions))
    numbers = np.arange(first, first + samples)[:, np.newaxis] * count + np.arange(count)
    return (numbers * GOLDEN % 1 * positions).astype(np.int64)

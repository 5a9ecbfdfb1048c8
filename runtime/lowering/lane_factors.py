"""What runtime.kernels.requantize_lanes reads of each channel, in the order of lanes."""

from __future__ import annotations

import numpy as np

from runtime.kernels.matmul_parameters import FP32_ROUND_EVEN, TFLITE_DOUBLE
from runtime.lowering.requantization import Requantization

LANES = 16
LARGEST_ROUNDED = 2**22  # numbers up to there are rounded by adding 1.5 * 2**23
INT32 = 2**31 - 1


def lane_order(vectors: int) -> np.ndarray:
    """(vectors * 16,): the channel in each element of `vectors` vectors whose bytes come out in order once packed."""
    lane, i = np.divmod(np.arange(LANES), 4)
    return (4 * vectors * lane + 4 * np.arange(vectors)[:, np.newaxis] + i).reshape(-1)


def in_lane_order(values: np.ndarray, vectors: int) -> np.ndarray:
    """(..., panels * vectors * 16) reordered within each panel; a multiple of the panel's width."""
    panels = values.reshape(*values.shape[:-1], -1, vectors * LANES)
    return np.ascontiguousarray(panels[..., lane_order(vectors)]).reshape(values.shape)


def lane_factors(scaling: Requantization, largest: np.ndarray, vectors: int, groups: int = 1) -> np.ndarray | None:
    """Bytes of the factors of (groups, panels) of `vectors` vectors, or None where accumulators may be too large.

    largest: (channels,) bounds of the accumulators' magnitudes, bias included, as exact integers or floats.
    """
    multipliers, shifts = scaling.factors()
    width = vectors * LANES
    if scaling.rule == FP32_ROUND_EVEN:
        if (largest * scaling.multipliers >= LARGEST_ROUNDED).any():
            return None
        columns = [multipliers]
    elif scaling.rule == TFLITE_DOUBLE:
        right = np.where(multipliers == 0, 1, -shifts).astype(np.int64)
        if (right < 1).any() or (right > 30).any():
            return None
        addends = (1 << (right - 1)) + scaling.output_zero * (1 << right)
        highest = largest * (multipliers.astype(np.float64) / 2**31) + 2 + np.abs(addends)
        if (highest > INT32).any() or (largest > INT32).any():
            return None
        columns = [multipliers, addends.astype(np.int32), right.astype(np.int32)]
    else:
        return None
    per_group = multipliers.size // groups
    padded = -(-per_group // width) * width
    rows = []
    for column in columns:
        row = (
            np.ones((groups, padded), column.dtype)
            if column is columns[-1]
            else np.zeros((groups, padded), column.dtype)
        )
        row[:, :per_group] = column.reshape(groups, per_group)
        rows.append(in_lane_order(row, vectors).reshape(groups, -1, LANES))
    return np.stack([row.view(np.int32) for row in rows], axis=2).view(np.uint8).reshape(-1)

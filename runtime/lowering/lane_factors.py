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
    """(..., panels * vectors * 16) reordered within each panel."""
    panels = values.reshape(*values.shape[:-1], -1, vectors * LANES)
    return np.ascontiguousarray(panels[..., lane_order(vectors)]).reshape(values.shape)


def lane_factors(
    scaling: Requantization, bias: np.ndarray, products: np.ndarray, vectors: int, groups: int = 1
) -> np.ndarray | None:
    """The factors of (groups, panels) of `vectors` vectors as bytes, or None where a rule cannot be used.

    bias: int64 (channels,), added to the sums of products. products: (channels,) bounds of those sums' magnitudes.
    A rule is used where no number can be too large for it: that is proven here, so that kernels need not look.
    """
    multipliers, shifts = scaling.factors()
    largest = np.abs(bias) + products
    if (largest > INT32).any():
        return None
    width = vectors * LANES
    per_group = multipliers.size // groups
    panels = -(-per_group // width)

    def vectors_of(values: np.ndarray) -> np.ndarray:
        """(groups, panels, vectors, 16), zeros beyond the last channel."""
        padded = np.zeros((groups, panels * width), values.dtype)
        padded[:, :per_group] = values.reshape(groups, per_group)
        return in_lane_order(padded, vectors).reshape(groups, panels, vectors, LANES)

    if scaling.rule == FP32_ROUND_EVEN:
        if (largest * scaling.multipliers >= LARGEST_ROUNDED).any():
            return None
        parts = [vectors_of(multipliers), vectors_of(bias.astype(np.int32))]
    elif scaling.rule == TFLITE_DOUBLE:
        right = np.where(multipliers == 0, 1, -shifts).astype(np.int64)
        if (right < 1).any() or (right > 30).any():
            return None
        addends = (1 << (right - 1)) + scaling.output_zero * (1 << right)
        if (largest * (multipliers / 2**31) + 2 + np.abs(addends) > INT32).any():
            return None
        nudges = vectors_of(bias * multipliers.astype(np.int64) + (1 << 30))
        parts = [
            vectors_of(multipliers),
            vectors_of(addends.astype(np.int32)),
            vectors_of(right.astype(np.int32)),
            np.ascontiguousarray(nudges[..., 0::2]),
            2 * nudges[..., 1::2],
        ]
    else:
        return None
    return np.concatenate([part.view(np.uint8) for part in parts], axis=-1).reshape(-1)

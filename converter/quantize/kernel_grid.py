"""Kernels whose values lie on a grid: what quantization-aware training leaves, whatever tool it was done with.

Each output channel of such a kernel is integers times a step. Quantizing it again from its largest magnitude would give
other integers where that magnitude is not 127 steps (4-bit weights, learned steps).
"""

from __future__ import annotations

import numpy as np

LIMIT = 127
FIRST = (LIMIT, 7)  # what 8 and 4 bits give where the largest weight sets the step
TOLERANCE = 1e-3  # of a step: float32 products of integers and a step are far nearer
SAMPLE = 256  # weights of each channel that tell most kernels from those on a grid


def integers_on_grid(real: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray] | None:
    """(int8 of the same shape, float64 step of each channel along `axis`) if every channel is integers from -127 to
    127 times a step, else None. Channels of zeros have step 0.

    Of the steps that fit a channel the one is taken whose largest integer is 127, or 7, or else the smallest.
    """
    channels = np.moveaxis(real, axis, 0)
    rows = channels.reshape(channels.shape[0], -1).astype(np.float64)
    largest = np.abs(rows).max(axis=1, initial=0)
    found = np.where(largest > 0, 0, 1)
    stride = max(1, rows.shape[1] // SAMPLE)
    for most in (*FIRST, *(n for n in range(1, LIMIT) if n not in FIRST)):
        open_rows = np.flatnonzero(found == 0)
        for part in (rows[:, ::stride], rows):
            ratios = part[open_rows] * (most / largest[open_rows, np.newaxis])
            open_rows = open_rows[(np.abs(ratios - np.rint(ratios)) < TOLERANCE).all(axis=1)]
        found[open_rows] = most
    if not found.all():
        return None
    integers = np.rint(rows * (found / np.where(largest > 0, largest, 1))[:, np.newaxis]).astype(np.int8)
    return np.moveaxis(integers.reshape(channels.shape), 0, axis), largest / found

"""Weights as few integers times a step for each output channel: 1 to 8 bits a weight.

The integers are symmetric, from -(2^(bits-1) - 1) on, and zero is one of them: 8 bits are -127 to 127, 2 bits are -1, 0
and 1. With 1 bit they are -1 and 1 (Rastegari et al. 2016, arXiv:1603.05279), and 0 where a weight was pruned. In few
bits the step that suits the largest weight is far too long for all others: the one of least squared error is searched.
"""

from __future__ import annotations

import numpy as np

from converter.quantize.moments import Moments
from converter.quantize.rounding import round_compensated
from converter.quantize.weights import Channels

CANDIDATES = 48  # steps that are tried, from all of the range down to a tenth of it
REFINEMENTS = 3  # of the best: integers for a step, then the best step for those integers
SMALLEST = 1e-30  # of a step: products with it are to be normal numbers of float32


def limit_of(bits: int) -> int:
    """The largest integer."""
    return max(1, 2 ** (bits - 1) - 1)


def to_grid(real: np.ndarray, axis: int, bits: int, moments: Moments | None = None) -> Channels:
    """Integers and a step for each channel along `axis`. Zeros stay zeros.

    moments: of what the weights meet, to round them by, from 2 bits on.
    """
    channels = np.moveaxis(real, axis, 0)
    rows = channels.reshape(channels.shape[0], -1).astype(np.float64)
    integers, step = _signs(rows) if bits == 1 else _search(rows, limit_of(bits))
    step = np.where(step > SMALLEST, step, 1.0)
    if moments is not None and bits > 1:
        base = round_compensated(real, step, moments, limit_of(bits))
    else:
        base = np.moveaxis(integers.reshape(channels.shape), 0, axis).astype(np.int8)
    return Channels(np.ascontiguousarray(base), step, np.ones(step.size, np.int8), None)


def _signs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(-1, 0 or 1; the mean magnitude of what is not zero): the least squared error of one step."""
    integers = np.sign(rows)
    counts = np.count_nonzero(rows, axis=1)
    return integers, np.abs(rows).sum(axis=1) / np.maximum(counts, 1)


def _search(rows: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """(integers, steps) of small squared error."""
    whole = np.abs(rows).max(axis=1, initial=0) / limit
    whole = np.where(whole > SMALLEST, whole, 1.0)
    best = whole.copy()
    error = _error(rows, _round(rows, best, limit), best)
    for share in np.linspace(1, 0.1, CANDIDATES)[1:]:
        step = whole * share
        found = _error(rows, _round(rows, step, limit), step)
        best, error = np.where(found < error, step, best), np.minimum(found, error)
    for _ in range(REFINEMENTS):
        integers = _round(rows, best, limit)
        squares = (integers**2).sum(axis=1)
        fitted = np.where(squares > 0, (integers * rows).sum(axis=1) / np.maximum(squares, 1), best)
        best = np.where(fitted > SMALLEST, fitted, best)
    return _round(rows, best, limit), best


def _round(rows: np.ndarray, step: np.ndarray, limit: int) -> np.ndarray:
    return np.clip(np.rint(rows / step[:, np.newaxis]), -limit, limit)


def _error(rows: np.ndarray, integers: np.ndarray, step: np.ndarray) -> np.ndarray:
    return np.square(rows - integers * step[:, np.newaxis]).sum(axis=1)

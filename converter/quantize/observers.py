"""Observers: what range of real numbers a tensor takes, seen batch by batch.

All are deterministic and independent of how samples are cut into batches. Histograms have bins whose width is a
power of two and whose edges include zero, so that doubling the width merges bins exactly: a second pass over the
data is never needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from schema.errors import InputError

LEVELS = 256  # of int8
HALF_BINS = 2048  # bins on each side of zero; at least half of them are used on the wider side
PERCENTILE = 99.999
CANDIDATES = 128  # thresholds that the entropy observer compares
BLOCK = 1 << 16  # elements whose bins are found at once


class Observer(ABC):
    """Sees a tensor's values and proposes the range to quantize."""

    @abstractmethod
    def see(self, array: np.ndarray) -> None:
        """Take in finite float values of any shape."""

    @abstractmethod
    def range(self) -> tuple[float, float]:
        """(lowest, highest) real value to represent. (0, 0) where nothing was seen."""


class MinMax(Observer):
    """The smallest and the largest value seen."""

    def __init__(self) -> None:
        self._low, self._high = math.inf, -math.inf

    def see(self, array: np.ndarray) -> None:
        if array.size:
            self._low = min(self._low, float(array.min()))
            self._high = max(self._high, float(array.max()))

    def range(self) -> tuple[float, float]:
        return (self._low, self._high) if self._low <= self._high else (0.0, 0.0)


class Histogram(MinMax):
    """Counts of the values seen, in 2 * HALF_BINS bins around zero; bin b holds [(b - HALF_BINS) * width, ... +
    width).
    """

    def __init__(self) -> None:
        super().__init__()
        self.width = 0.0  # 0: nothing but zeros seen so far
        self.counts = np.zeros(2 * HALF_BINS, np.int64)

    def see(self, array: np.ndarray) -> None:
        super().see(array)
        if not array.size:
            return
        # The narrowest power of two for which the largest magnitude so far falls inside the bins.
        largest = max(abs(self._low), abs(self._high))
        width = math.ldexp(1.0, math.frexp(largest / HALF_BINS)[1]) if largest > 0 else 0.0
        while 0 < self.width < width:
            self._double()
        if self.width == 0 and width > 0:
            self.width = width
        if self.width == 0:
            self.counts[HALF_BINS] += array.size
            return
        flat = np.ravel(array)
        # A power of two times a float32 is exact, but for widths whose reciprocal float32 cannot hold.
        scale = np.float32(1 / self.width) if self.width > 1e-37 else np.float64(1 / self.width)
        for start in range(0, flat.size, BLOCK):
            bins = np.floor(flat[start : start + BLOCK] * scale)
            bins += HALF_BINS
            self.counts += np.bincount(bins.astype(np.intp), minlength=2 * HALF_BINS)

    def _double(self) -> None:
        """Merge bins 2b and 2b + 1 into b, counted from zero."""
        merged = self.counts.reshape(HALF_BINS, 2).sum(axis=1)
        self.counts = np.zeros(2 * HALF_BINS, np.int64)
        self.counts[HALF_BINS // 2 : HALF_BINS // 2 + HALF_BINS] = merged
        self.width *= 2

    def clipped(self, low: float, high: float) -> tuple[float, float]:
        """A range inside of what was seen."""
        lowest, highest = super().range()
        return max(low, lowest), min(high, highest)


class Percentile(Histogram):
    """The range that leaves out (100 - percentile) % of the values, half of them on each side."""

    def __init__(self, percentile: float = PERCENTILE) -> None:
        super().__init__()
        if not 50 < percentile <= 100:
            raise InputError(f"percentile is {percentile}; it is more than 50 and at most 100")
        self._percentile = percentile

    def range(self) -> tuple[float, float]:
        if self.width == 0:
            return super().range()
        total = int(self.counts.sum())
        left_out = total * (100 - self._percentile) / 200
        below = np.cumsum(self.counts)
        low = int(np.searchsorted(below, left_out, side="right"))
        high = int(np.searchsorted(below, total - left_out, side="left"))
        return self.clipped((low - HALF_BINS) * self.width, (high + 1 - HALF_BINS) * self.width)


class Entropy(Histogram):
    """The threshold on |x| whose 8-bit histogram loses least information about the one seen.

    The Kullback-Leibler divergence from the clipped histogram P to its quantized version Q is minimized over
    thresholds, as in S. Migacz, "8-bit Inference with TensorRT", GTC 2017; here both signs are kept, so that a range
    that is not symmetric is cut only where it exceeds the threshold. Zero is left out: it is exact in every
    quantization, and would outweigh the rest after a ReLU.
    """

    def range(self) -> tuple[float, float]:
        lowest, highest = MinMax.range(self)
        if self.width == 0:
            return lowest, highest
        counts = self.counts.astype(np.float64)
        counts[HALF_BINS] = 0
        used = math.ceil(max(-lowest, highest) / self.width)
        # Below one bin a level nothing would be merged, and every threshold would look free of loss.
        first = min(used, LEVELS // 2 if lowest < 0 < highest else LEVELS)
        best, best_loss = used, math.inf
        for threshold in sorted({int(t) for t in np.linspace(first, used, CANDIDATES)}, reverse=True):
            low = max(HALF_BINS - threshold, 0) if lowest < 0 else HALF_BINS
            high = min(HALF_BINS + threshold, 2 * HALF_BINS) if highest > 0 else HALF_BINS
            loss = _divergence(counts, low, high)
            if loss < best_loss:
                best, best_loss = threshold, loss
        return self.clipped(-best * self.width, best * self.width)


def _divergence(counts: np.ndarray, low: int, high: int) -> float:
    """KL(P || Q) of 8-bit quantization to the range of bins [low, high).

    P is the histogram with outliers moved to the end bins, Q the one without them, quantized and spread again.
    """
    inside = counts[low:high]
    if inside.size == 0:
        return math.inf
    clipped = inside.copy()
    clipped[0] += counts[:low].sum()
    clipped[-1] += counts[high:].sum()
    level = np.arange(inside.size) * LEVELS // max(inside.size, LEVELS)
    occupied = inside > 0
    total = np.bincount(level, inside)
    share = np.bincount(level, occupied)
    quantized = np.where(occupied, (total / np.maximum(share, 1))[level], 0)
    if quantized.sum() == 0:
        return math.inf
    # Outliers in an otherwise empty end bin have no counterpart in Q: a little mass keeps the divergence finite, and
    # large.
    p, q = clipped / clipped.sum(), quantized / quantized.sum()
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-9))))


OBSERVERS: dict[str, type[Observer]] = {"minmax": MinMax, "percentile": Percentile, "entropy": Entropy}


def create(name: str) -> Observer:
    """A new observer by name. Raises InputError for one that is not there."""
    require_known(name)
    return OBSERVERS[name]()


def require_known(name: str) -> None:
    """Raise InputError unless there is an observer of that name."""
    if name not in OBSERVERS:
        raise InputError(f"observer is {name!r}; it is one of {', '.join(OBSERVERS)}")

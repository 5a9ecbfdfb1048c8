"""How near numbers are to those that they stand for: signal to noise, cosine, largest error."""

from __future__ import annotations

import math

import numpy as np


class Fidelity:
    """Sums over the elements of real numbers and of their approximation, an array at a time.

    Elements whose real number is not finite do not count.
    """

    def __init__(self) -> None:
        self.elements = 0
        self.max_error = 0.0
        self._signal = self._noise = self._approximated = self._product = 0.0

    def add(self, real: np.ndarray, approximation: np.ndarray) -> None:
        """Take in arrays of one shape."""
        x, y = real.astype(np.float64).reshape(-1), approximation.astype(np.float64).reshape(-1)
        finite = np.isfinite(x)
        if not finite.all():
            x, y = x[finite], y[finite]
        if not x.size:
            return
        error = y - x
        self.elements += x.size
        self.max_error = max(self.max_error, float(np.abs(error).max()))
        self._signal += float(x @ x)
        self._noise += float(error @ error)
        self._approximated += float(y @ y)
        self._product += float(x @ y)

    @property
    def snr(self) -> float:
        """10 log10(sum x^2 / sum (y - x)^2) in dB; infinite where nothing differs."""
        if not self._noise:
            return math.inf
        return 10 * math.log10(self._signal / self._noise) if self._signal else -math.inf

    @property
    def cosine(self) -> float:
        """Of the angle between all numbers as one vector and their approximation; 1 where nothing differs."""
        lengths = math.sqrt(self._signal * self._approximated)
        return min(1.0, self._product / lengths) if lengths else float(not self._noise)

"""Functions that numpy lacks, to the precision of their argument's dtype."""

from __future__ import annotations

import numpy as np


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow for any x."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)

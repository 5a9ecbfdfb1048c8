"""Functions that numpy lacks, to the precision of their argument's dtype."""

from __future__ import annotations

import math

import numpy as np

# W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969): numerators and
# denominators of erf(x) / x in x^2 up to 0.46875, of exp(x^2) erfc(x) in x up to 4, and above of the remainder of its
# expansion in 1 / x^2.
_SMALL = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
     8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_LARGE = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    return np.polyval(coefficients[0], x) / np.polyval(coefficients[1], x)


def _erfc_positive(x: np.ndarray) -> np.ndarray:
    """erfc for x > 0.46875."""
    middle = _ratio(_MIDDLE, np.minimum(x, 4.0))
    inverse = 1 / np.square(np.maximum(x, 4.0))
    large = (1 / math.sqrt(math.pi) - inverse * _ratio(_LARGE, inverse)) / np.maximum(x, 4.0)
    # exp(-x^2) in two factors, the first of them exact, keeps the relative error small where x^2 is large.
    rounded = np.trunc(x * 16) / 16
    return np.exp(-rounded * rounded) * np.exp(-(x - rounded) * (x + rounded)) * np.where(x <= 4.0, middle, large)


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x), with a small relative error for large x too."""
    wide = np.asarray(x, np.float64)
    size = np.minimum(np.abs(wide), 28.0)  # erfc(28) is 0 in float64
    outer = _erfc_positive(size)
    inner = 1 - wide * _ratio(_SMALL, np.square(np.minimum(size, 0.5)))
    result = np.where(size <= 0.46875, inner, np.where(wide > 0, outer, 2 - outer))
    return np.where(np.isnan(wide), wide, result).astype(x.dtype)


def erf(x: np.ndarray) -> np.ndarray:
    """The integral of 2 / sqrt(pi) * exp(-t^2) from 0 to x."""
    wide = np.asarray(x, np.float64)
    size = np.minimum(np.abs(wide), 28.0)
    inner = wide * _ratio(_SMALL, np.square(np.minimum(size, 0.5)))
    result = np.where(size <= 0.46875, inner, np.copysign(1 - _erfc_positive(size), wide))
    return np.where(np.isnan(wide), wide, result).astype(x.dtype)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow for any x."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)

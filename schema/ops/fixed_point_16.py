"""The logistic function and tanh in 16-bit fixed point, bit by bit as TFLite's integer LSTM computes them.

"Qm" is a number with m integer bits and 15 - m fractional bits, held in int64 arrays. Qa times Qb is Q(a + b).
Formulas: gemmlowp/fixedpoint/fixedpoint.h; fixed_point_functions.py has the same functions of 32 bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from schema.fixedpoint import rounding_divide_by_pot
from schema.ops import fixed_point_functions as wide

LOWEST, ONE = -(1 << 15), (1 << 15) - 1  # ONE: 1 in Q0, as near as it gets


def saturate(x: ArrayLike) -> np.ndarray:
    return np.clip(np.asarray(x, np.int64), LOWEST, ONE)


def wrap(x: ArrayLike) -> np.ndarray:
    """int64 -> the int16 that two's complement arithmetic would give, as int64."""
    return np.asarray(x, np.int64).astype(np.int16).astype(np.int64)


def constant(real: float, integer_bits: int = 0) -> int:
    """The number in Q(integer_bits): rounded to 32 bits first, then to 16."""
    return int(rounding_divide_by_pot(wide.constant(real, integer_bits), 16))


def multiply(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """a * b / 2**15 to the nearest integer, saturated."""
    return saturate((np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 14)) >> 15)


def rescale(x: ArrayLike, exponent: int) -> np.ndarray:
    """x * 2**exponent, saturated or rounded. Qm to Qn is rescale(x, m - n)."""
    if exponent >= 0:
        return saturate(np.asarray(x, np.int64) << exponent)
    return rounding_divide_by_pot(x, -exponent)


def exp_on_negative_values(a: np.ndarray, integer_bits: int) -> np.ndarray:
    """exp(a) in Q0 for a <= 0 in Q(integer_bits)."""
    fractional_bits = 15 - integer_bits
    quarter = 1 << (fractional_bits - 2)
    part = (a & (quarter - 1)) - quarter
    x = wrap(rescale(part, integer_bits) + (1 << 12))
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    series = rescale(wrap(multiply(wrap(rescale(x4, -2) + x3), constant(1 / 3)) + x2), -1)
    eighth = constant(math.exp(-1 / 8))
    result = saturate(eighth + multiply(wrap(x + series), eighth))
    remainder = wrap(part - a)
    for exponent in range(-2, min(integer_bits, 5)):
        bit = 1 << (fractional_bits + exponent)
        result = np.where(remainder & bit, multiply(result, constant(math.exp(-(2.0**exponent)))), result)
    if integer_bits > 5:
        result = np.where(a < constant(-32.0, integer_bits), 0, result)
    return np.where(a == 0, ONE, result)


def _inverse_of_half(half: np.ndarray) -> np.ndarray:
    """1 / half in Q2 for numbers from 1/2 to 1 in Q0: three Newton-Raphson steps."""
    x = wrap(constant(48 / 17, 2) + multiply(half, constant(-32 / 17, 2)))
    for _ in range(3):
        error = wrap((1 << 13) - multiply(half, x))
        x = wrap(x + rescale(multiply(x, error), 2))
    return x


def logistic(x: np.ndarray, integer_bits: int = 3) -> np.ndarray:
    """In Q0, of x in Q(integer_bits)."""
    x = np.asarray(x, np.int64)
    inverse = _inverse_of_half(wide.half_sum(exp_on_negative_values(-np.abs(x), integer_bits), ONE))
    positive = rescale(inverse, 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, positive, wrap(ONE - positive)))


def tanh(x: np.ndarray, integer_bits: int) -> np.ndarray:
    """In Q0, of x in Q(integer_bits)."""
    x = np.asarray(x, np.int64)
    inverse = _inverse_of_half(wide.half_sum(exp_on_negative_values(-np.abs(x), integer_bits + 1), ONE))
    positive = rescale(wrap(inverse - (1 << 13)), 2)
    return np.where(x == 0, 0, np.where(x < 0, -positive, positive))

"""Exponential, reciprocal, logarithm and inverse square root in 32-bit fixed point, bit by bit as TFLite computes them.

"Qm" is a number with m integer bits and 31 - m fractional bits, held in int64 arrays. Qa times Qb is Q(a + b).
Formulas: gemmlowp/fixedpoint/fixedpoint.h and tensorflow/lite/kernels/internal/common.h.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from schema.fixedpoint import INT32_MAX, rounding_divide_by_pot, saturate, wrap_int32
from schema.fixedpoint import doubling_high_multiply as multiply

ONE = INT32_MAX  # 1 in Q0, as near as it gets


def constant(real: float, integer_bits: int = 0) -> int:
    """The number in Q(integer_bits)."""
    return math.floor(real * 2.0 ** (31 - integer_bits) + 0.5)


def rescale(x: ArrayLike, exponent: ArrayLike) -> np.ndarray:
    """x * 2**exponent, saturated or rounded (SaturatingRoundingMultiplyByPOT). Qm to Qn is rescale(x, m - n)."""
    left, right = np.maximum(exponent, 0), np.maximum(np.negative(exponent), 0)
    return rounding_divide_by_pot(saturate(np.asarray(x, np.int64) << left), right)


def half_sum(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """(a + b) / 2, ties away from zero (RoundingHalfSum)."""
    total = np.asarray(a, np.int64) + b
    return np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))


def leading_zeros(x: np.ndarray) -> np.ndarray:
    """Of x seen as 32 unsigned bits: 32 for 0."""
    return 32 - np.frexp((np.asarray(x, np.int64) & 0xFFFFFFFF).astype(np.float64))[1]


def leading_sign_bits(x: np.ndarray) -> np.ndarray:
    """By how many bits an int32 number can be shifted left (CountLeadingSignBits of common.h): 31 for 0."""
    return leading_zeros(np.where(x >= 0, x, -x - 1)) - 1


def exp_on_negative_values(a: np.ndarray, integer_bits: int) -> np.ndarray:
    """exp(a) in Q0 for a <= 0 in Q(integer_bits).

    The Taylor series about -1/8 for the part modulo 1/4, then a product with exp(-2**k) for each further bit.
    """
    fractional_bits = 31 - integer_bits
    quarter = 1 << (fractional_bits - 2)
    part = (a & (quarter - 1)) - quarter
    x = wrap_int32(rescale(part, integer_bits) + (1 << 28))
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    series = rescale(multiply(rescale(x4, -2) + x3, constant(1 / 3)) + x2, -1)
    eighth = constant(math.exp(-1 / 8))
    result = wrap_int32(eighth + multiply(x + series, eighth))
    remainder = part - a
    for exponent in range(-2, min(integer_bits, 5)):
        bit = 1 << (fractional_bits + exponent)
        result = np.where(remainder & bit, multiply(result, constant(math.exp(-(2.0**exponent)))), result)
    if integer_bits > 5:
        result = np.where(a < constant(-32.0, integer_bits), 0, result)
    return np.where(a == 0, ONE, result)


def reciprocal_of_one_plus(a: np.ndarray) -> np.ndarray:
    """1 / (1 + a) in Q0 for a in [0, 1] in Q0: three Newton-Raphson steps."""
    half_denominator = half_sum(a, ONE)
    x = constant(48 / 17, 2) + multiply(half_denominator, constant(-32 / 17, 2))
    for _ in range(3):
        error = constant(1.0, 2) - multiply(half_denominator, x)
        x = wrap_int32(x + rescale(multiply(x, error), 2))
    return rescale(x, 1)


def reciprocal(x: np.ndarray, integer_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """1 / x for x > 0 in Q(integer_bits), as (Q0 number, bits to shift it right by) (GetReciprocal of common.h)."""
    headroom = leading_zeros(x)
    return reciprocal_of_one_plus(wrap_int32((x << headroom) - (1 << 31))), integer_bits - headroom


def log_of_at_least_one(x: np.ndarray, input_bits: int, output_bits: int) -> np.ndarray:
    """log(x) in Q(output_bits) for x >= 1 in Q(input_bits) (log_x_for_x_greater_than_or_equal_to_1 of common.h).

    x is written as z * 2**n with z within 2**(1/4) of sqrt(sqrt(1/2)), and log(z) is a rational function of z.
    """
    root, root_root = constant(math.sqrt(0.5)), constant(math.sqrt(math.sqrt(0.5)))
    fourth_root_of_2 = math.sqrt(math.sqrt(2.0))
    bits = output_bits + 1  # one bit of headroom while summing
    quarter = rescale(np.int64(constant(0.25)), -bits)
    headroom = leading_zeros(x)
    z_a = rescale(multiply(rescale(x, headroom - 1), root), 1)
    power_a = saturate(rescale(input_bits - headroom, 31 - bits) + quarter)
    headroom_b = leading_zeros(multiply(x, root)) - 1
    z_b = rescale(x, headroom_b)
    power_b = saturate(rescale(input_bits - headroom_b, 31 - bits) - quarter)
    z, power = np.minimum(z_a, z_b), np.maximum(power_a, power_b)
    p = half_sum(z, root_root)
    q = wrap_int32(2 * (z - root_root))
    square = multiply(q, q)
    numerator = multiply(q, z) + multiply(multiply(q, square), constant(11 / 240 * fourth_root_of_2))
    inner = constant(2 / fourth_root_of_2 - fourth_root_of_2) + q + multiply(square, constant(fourth_root_of_2 / 20))
    denominator = multiply(p, wrap_int32(inner)) + multiply(q, constant(fourth_root_of_2 / 4))
    log_z = multiply(rescale(wrap_int32(numerator), -bits), reciprocal_of_one_plus(wrap_int32(denominator)))
    return rescale(wrap_int32(multiply(power, constant(math.log(2.0))) + log_z), 1)


def inverse_sqrt(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / sqrt(x) of integers x >= 0 as (q31, shift) for multiply_by_quantized_multiplier (0 counts as 1).

    GetInvSqrtQuantizedMultiplierExp of common.h: five Newton-Raphson steps in Q3 on x scaled by a power of 4.
    """
    x = np.asarray(x, np.int64)
    scaled, right = np.maximum(x, 2), np.full(x.shape, 11, np.int64)
    while np.any(large := scaled >= 1 << 29):
        scaled, right = np.where(large, scaled // 4, scaled), right + large
    pairs = (leading_zeros(scaled) - 1) // 2 - 1
    scaled, right = scaled << (2 * pairs), right - pairs
    number = scaled >> 1
    half = rescale(number, -1)
    root = np.full(x.shape, 1 << 28, np.int64)  # 1 in Q3
    for _ in range(5):
        cube = rescale(multiply(multiply(root, root), root), 6)
        root = rescale(wrap_int32(multiply(root, constant(1.5, 3)) - multiply(half, cube)), 3)
    q31 = multiply(root, constant(math.sqrt(0.5)))
    q31, right = wrap_int32(q31 << np.maximum(-right, 0)), np.maximum(right, 0)
    return np.where(x <= 1, INT32_MAX, q31), np.where(x <= 1, 0, -right)

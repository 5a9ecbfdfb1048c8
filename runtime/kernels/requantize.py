"""From int32 accumulators to int8: the integer rules of schema.fixedpoint, for kernels. Imports numba.

TFLITE_DOUBLE: x * q31 * 2**(shift - 31) with two roundings (gemmlowp: doubling high multiply to nearest, ties up; then
division by a power of two, ties away from zero). FP32_ROUND_EVEN: float32(x) * scale, clamped, to the nearest even.
Exact: float64(x) * scale, rounded once, ties away from zero.
"""

from __future__ import annotations

from numba import float32, int32, int64

from runtime.kernels.abi import inline
from runtime.simd.vector import F32x16, F64x16, I32x16, I64x16, convert, select, splat, zero

# Adding and subtracting 1.5 * 2**23 leaves a float32 of less than 2**22 rounded to the nearest even integer.
_ROUND = float32(12582912.0)


@inline
def clamp(value, low, high):
    """value, not below `low` and not above `high`; all of one type."""
    value = low if value < low else value
    return high if value > high else value


@inline
def requantize_double(acc, q31, shift):
    """TFLITE_DOUBLE for one number, without zero point: int64 values that fit int32, in and out."""
    left = shift if shift > 0 else int64(0)
    right = -shift if shift < 0 else int64(0)
    shifted = int64(int32(acc << left))
    high = (shifted * int64(q31) + (int64(1) << 30)) >> 31
    mask = (int64(1) << right) - 1
    threshold = (mask >> 1) + (int64(1) if high < 0 else int64(0))
    return (high >> right) + (int64(1) if (high & mask) > threshold else int64(0))


@inline
def requantize_double_x16(acc, q31, shift):
    """TFLITE_DOUBLE for 16 numbers, all I32x16."""
    none, one = zero(I32x16), splat(I32x16, 1)
    left = select(shift > none, shift, none)
    right = none - select(shift < none, shift, none)
    product = convert(I64x16, acc << left) * convert(I64x16, q31) + splat(I64x16, 1 << 30)
    high = convert(I32x16, product >> splat(I64x16, 31))
    mask = (one << right) - one
    threshold = (mask >> one) + convert(I32x16, high < none)
    return (high >> right) + convert(I32x16, (high & mask) > threshold)


@inline
def requantize_exact_x16(acc, scale, low, high):
    """The exact rule for 16 numbers: acc I32x16, the rest F64x16; `low` and `high` are without the zero point."""
    scaled = convert(F64x16, acc) * scale
    scaled = select(scaled < low, low, scaled)
    scaled = select(scaled > high, high, scaled)
    whole = convert(I32x16, scaled)
    rest = scaled - convert(F64x16, whole)
    half = splat(F64x16, 0.5)
    return whole + convert(I32x16, rest >= half) - convert(I32x16, rest <= zero(F64x16) - half)


@inline
def requantize_even_x16(acc, scale, low, high):
    """FP32_ROUND_EVEN for 16 numbers: acc I32x16, the rest F32x16; `low` and `high` are without the zero point."""
    scaled = convert(F32x16, acc) * scale
    scaled = select(scaled < low, low, scaled)
    scaled = select(scaled > high, high, scaled)
    offset = splat(F32x16, _ROUND)
    return convert(I32x16, (scaled + offset) - offset)

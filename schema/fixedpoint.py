"""Integer arithmetic of quantized ops, exactly as the TFLite int8 specification has it.

Formulas: tensorflow/lite/kernels/internal/{common.cc, quantization_util.cc}; for FP32_ROUND_EVEN XNNPACK's qs8-gemm.
Everything works on arrays of int64 that hold int32 values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from schema.errors import ShapeError
from schema.graph import TensorType
from schema.quantization import Quantization

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
RULES = ("TFLITE_DOUBLE", "FP32_ROUND_EVEN")
"""What a file may ask for."""

_rule: ContextVar[str] = ContextVar("requantization rule", default="TFLITE_DOUBLE")


@contextmanager
def requantization(rule: str) -> Iterator[None]:
    """Within this context `requantize` follows that rule (Model.requantization); outside it is TFLITE_DOUBLE."""
    token = _rule.set(rule)
    try:
        yield
    finally:
        _rule.reset(token)


def quantize_multipliers(reals: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(q31, shift), flat int32 arrays: real = q31 * 2**(shift - 31) with q31 in [2**30, 2**31), for each of `reals`
    (QuantizeMultiplier of quantization_util.cc).

    Raises ShapeError for a multiplier that is not finite: scales too far apart for float32.
    """
    reals = np.asarray(reals, np.float64).reshape(-1)
    if not np.isfinite(reals).all():
        wrong = reals[~np.isfinite(reals)][0]
        raise ShapeError(f"the scales are too far apart: they give a multiplier of {wrong}")
    fraction, shift = np.frexp(reals)
    q31 = np.copysign(np.floor(np.abs(fraction) * 2**31 + 0.5), fraction)  # std::round: ties away from zero
    q31, shift = np.where(q31 == 2**31, q31 / 2, q31), shift + (q31 == 2**31)
    q31, shift = np.where(shift < -31, 0, q31), np.where(shift < -31, 0, shift)
    q31, shift = np.where(shift > 30, INT32_MAX, q31), np.minimum(shift, 30)
    return q31.astype(np.int32), shift.astype(np.int32)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """quantize_multipliers of one."""
    q31, shift = quantize_multipliers(real)
    return int(q31[0]), int(shift[0])


def power_of_two(scale: float | np.floating) -> int | None:
    """log2 of a scale that TFLite takes for a power of two: its logarithm is within 0.001 of an integer (CheckedLog2 of
    kernel_util.cc). None for others.
    """
    logarithm = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    nearest = np.rint(logarithm)
    return int(nearest) if abs(logarithm - nearest) < np.float32(1e-3) else None


def saturate(x: ArrayLike, dtype: DTypeLike = np.int32) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(x, info.min, info.max)


def wrap_int32(x: ArrayLike) -> np.ndarray:
    """int64 -> the int32 that two's complement arithmetic would give, as int64."""
    return np.asarray(x, np.int64).astype(np.int32).astype(np.int64)


def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> np.ndarray:
    """x / 2**exponent to the nearest integer, ties away from zero (gemmlowp RoundingDivideByPOT)."""
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def doubling_high_multiply(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """a * b / 2**31 to the nearest integer, saturated (gemmlowp SaturatingRoundingDoublingHighMul)."""
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    high = (a * b + (np.int64(1) << 30)) >> 31
    return np.where((a == INT32_MIN) & (b == INT32_MIN), INT32_MAX, high)


def multiply_by_quantized_multiplier(x: ArrayLike, q31: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """TFLITE_DOUBLE: x * q31 * 2**(shift - 31), rounded twice (common.cc MultiplyByQuantizedMultiplier).

    x: int32 values. q31, shift: integers or arrays that broadcast. Returns int64 holding int32 values.
    """
    x, shift = np.asarray(x, np.int64), np.asarray(shift, np.int64)
    high = doubling_high_multiply(wrap_int32(x << np.maximum(shift, 0)), q31)
    return rounding_divide_by_pot(high, np.maximum(-shift, 0))


def multiply_wide_by_quantized_multiplier(x: ArrayLike, q31: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """As above for 48-bit x, with only 16 bits of the multiplier and one rounding (the int64 overload of common.cc)."""
    q31, right = np.asarray(q31, np.int64), 15 - np.asarray(shift, np.int64)
    product = np.asarray(x, np.int64) * np.where(q31 < 0x7FFF0000, (q31 + (1 << 15)) >> 16, 0x7FFF)
    rounded = (product + (np.int64(1) << np.maximum(right - 1, 0))) >> np.maximum(right, 0)
    return np.where(right > 0, rounded, product << np.maximum(-right, 0))


def multiply_by_real(x: ArrayLike, real: float | np.floating) -> np.ndarray:
    """multiply_by_quantized_multiplier with the multiplier nearest to `real`."""
    return multiply_by_quantized_multiplier(x, *quantize_multiplier(float(real)))


def requantize(
    acc: np.ndarray,
    multipliers: ArrayLike,
    zero_point: int,
    low: int,
    high: int,
    rule: str | None = None,
    exact: bool = False,
) -> np.ndarray:
    """Accumulators to output integers: acc * multiplier + zero_point, clamped to [low, high], as int64.

    This is how linear ops and MUL end.
    acc: int32 values. multipliers: real numbers s_in * s_weights / s_out that broadcast against acc (float64).
    rule: TFLITE_DOUBLE rounds twice in integers; FP32_ROUND_EVEN multiplies in float32 and rounds to nearest even, as
    XNNPACK does (qs8-gemm fp32 requantization). Default: the rule of the surrounding `requantization` context.
    exact: TFLITE_DOUBLE rounds once, in float64, ties away from zero, as FULLY_CONNECTED does in LiteRT's reference.
    What is no int32 then is undefined there; here it saturates.
    """
    rule = rule or _rule.get()
    if rule == "FP32_ROUND_EVEN":
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.nan_to_num(np.asarray(acc).astype(np.float32) * np.asarray(multipliers, np.float32))
        clamped = np.clip(scaled, np.float32(low - zero_point), np.float32(high - zero_point))
        return np.rint(clamped).astype(np.int64) + zero_point
    if exact:
        product = round_half_away(np.asarray(acc, np.float64) * np.asarray(multipliers))
        return np.clip(product + zero_point, low, high).astype(np.int64)
    q31, shift = quantize_multipliers(multipliers)
    shape = np.shape(multipliers)
    scaled = multiply_by_quantized_multiplier(acc, q31.reshape(shape), shift.reshape(shape))
    return np.clip(scaled + zero_point, low, high)


def requantize_wide(acc: np.ndarray, multipliers: ArrayLike, low: int, high: int) -> np.ndarray:
    """`requantize` of 48-bit accumulators to int16, whose zero point is 0 (TFLite 16x8): one rounding, as int64.

    What is no int32 wraps around before it is clamped, as it does there.
    """
    q31, shift = (part.reshape(np.shape(multipliers)) for part in quantize_multipliers(multipliers))
    return np.clip(wrap_int32(multiply_wide_by_quantized_multiplier(acc, q31, shift)), low, high)


def round_half_away(x: np.ndarray | np.floating) -> np.ndarray:
    """std::round: nearest integer, ties away from zero, exact also where x + 0.5 is not."""
    with np.errstate(invalid="ignore"):
        whole = np.trunc(x)
        fraction = np.abs(x - whole)  # NaN for infinities, which stay themselves
    return whole + np.where(fraction >= 0.5, np.sign(x), 0).astype(whole.dtype)


def quantize(real: np.ndarray, quantization: Quantization, dtype: np.dtype) -> np.ndarray:
    """Real values to integers: round(real / scale) + zero_point, ties away from zero, saturated (AffineQuantize)."""
    scale, zero_point = quantization.broadcast(np.ndim(real))
    rounded = round_half_away(np.asarray(real, np.float32) / scale).astype(np.float64)
    return saturate(rounded + zero_point, dtype).astype(dtype)


def dequantize(integers: np.ndarray, quantization: Quantization) -> np.ndarray:
    """Integers to real values (float32): scale * (integer - zero_point)."""
    scale, zero_point = quantization.broadcast(np.ndim(integers))
    return (np.asarray(integers, np.int64) - zero_point).astype(np.float32) * scale


def activation_bounds(lowest: float, highest: float, output: TensorType) -> tuple[int, int]:
    """The integers that a fused activation clamps to: CalculateActivationRangeQuantized of kernel_util.cc."""
    if output.quantization is None:
        raise ShapeError(f"the output {output} needs a scale: it has no quantization")
    info = np.iinfo(output.dtype)
    scale, zero_point = output.quantization.scale[0], int(output.quantization.zero_point[0])

    def integer(real: float) -> int:
        with np.errstate(over="ignore"):
            steps = float(round_half_away(np.float32(real) / scale))
        return int(min(max(steps + zero_point, info.min), info.max))

    return integer(lowest), integer(highest)

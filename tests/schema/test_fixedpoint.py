"""Scales, multipliers and roundings."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema import Quantization, ShapeError, TensorType, fixedpoint

int32 = st.integers(fixedpoint.INT32_MIN, fixedpoint.INT32_MAX)
reals = st.floats(-9, 6).map(lambda e: 10**e)


def divide_half_away(numerator: int, denominator: int) -> int:
    quotient = abs(Fraction(numerator, denominator))
    return math.floor(quotient + Fraction(1, 2)) * (1 if numerator >= 0 else -1)


@given(reals)
def test_multiplier_is_the_nearest(real):
    q31, shift = fixedpoint.quantize_multiplier(real)
    assert 2**30 <= q31 < 2**31
    assert abs(Fraction(q31) * Fraction(2) ** (shift - 31) - Fraction(real)) <= Fraction(2) ** (shift - 32)


def test_multipliers_at_the_edges():
    assert fixedpoint.quantize_multiplier(0.0) == (0, 0)
    assert fixedpoint.quantize_multiplier(1.0) == (2**30, 1)
    assert fixedpoint.quantize_multiplier(math.nextafter(1.0, 0)) == (2**30, 1)
    assert fixedpoint.quantize_multiplier(2.0**-33) == (0, 0)
    assert fixedpoint.quantize_multiplier(2.0**-32) == (2**30, -31)
    assert fixedpoint.quantize_multiplier(-0.75) == (-3 * 2**29, 0)
    assert fixedpoint.quantize_multiplier(2.0**30) == (fixedpoint.INT32_MAX, 30)
    assert fixedpoint.quantize_multiplier(math.nextafter(2.0**29, 0)) == (2**30, 30)
    with pytest.raises(ShapeError, match="too far apart: they give a multiplier of inf"):
        fixedpoint.quantize_multipliers([0.5, math.inf])
    q31, shift = fixedpoint.quantize_multipliers(np.array([[0.5, 3.0]]))
    assert (q31.tolist(), shift.tolist()) == ([2**30, 3 * 2**29], [0, 2])


@given(int32, st.integers(0, 31))
def test_rounding_division(x, exponent):
    assert fixedpoint.rounding_divide_by_pot(x, exponent) == divide_half_away(x, 2**exponent)


@given(int32, int32)
def test_doubling_high_multiply(a, b):
    exact = math.floor(Fraction(a * b, 2**31) + Fraction(1, 2))
    assert fixedpoint.doubling_high_multiply(a, b) == min(exact, fixedpoint.INT32_MAX)


@given(st.integers(-(2**24), 2**24), st.floats(-6, 1).map(lambda e: 10**e))
def test_scaling_is_within_a_step(x, real):
    assert abs(int(fixedpoint.multiply_by_real(x, real)) - x * real) <= 1.0 + abs(x * real) * 2**-30


@given(st.integers(-(2**46), 2**46), st.floats(-9, 0).map(lambda e: 10**e))
def test_wide_scaling(x, real):
    q31, shift = fixedpoint.quantize_multiplier(real)
    result = int(fixedpoint.multiply_wide_by_quantized_multiplier(x, q31, shift))
    assert abs(result - x * real) <= 1 + abs(x * real) * 2**-14


@given(st.floats(-1e6, 1e6, width=32))
def test_half_away(x):
    exact = math.floor(abs(Fraction(x)) + Fraction(1, 2))
    assert fixedpoint.round_half_away(np.float32(x)) == math.copysign(exact, x)


def test_half_away_where_adding_a_half_is_inexact():
    just_below = np.nextafter(np.float32(0.5), np.float32(0))
    assert fixedpoint.round_half_away(np.array([just_below, -just_below, 0.5, -0.5, 2.5])).tolist() == [0, 0, 1, -1, 3]
    assert fixedpoint.round_half_away(np.float32(2**23 + 1)) == 2**23 + 1


def test_rules():
    acc, multiplier = np.array([300, 500, -500, 1500]), 0.004999999  # 1.4999997, 2.4999995, ..., 7.4999985
    twice = fixedpoint.requantize(acc, multiplier, 10, -128, 127, "TFLITE_DOUBLE")
    once = fixedpoint.requantize(acc, multiplier, 10, -128, 127, exact=True)
    assert once.tolist() == [11, 12, 8, 17]
    assert np.abs(twice - once).max() <= 1
    even = fixedpoint.requantize(np.array([1, 3, 5, -1, -3]), 0.5, 0, -128, 127, "FP32_ROUND_EVEN")
    assert even.tolist() == [0, 2, 2, 0, -2]
    away = fixedpoint.requantize(np.array([1, 3, 5]), 0.5, 0, -128, 127, exact=True)
    assert away.tolist() == [1, 2, 3]


@pytest.mark.parametrize("rule", fixedpoint.RULES)
def test_requantize_clamps_and_broadcasts(rule):
    acc = np.array([[1000, 1000], [-1000, -1000]])
    result = fixedpoint.requantize(acc, np.array([0.1, 1.0]), -5, -100, 90, rule)
    assert result.tolist() == [[90, 90], [-100, -100]]
    assert result.dtype == np.int64


def test_context_selects_the_rule():
    def half():
        return fixedpoint.requantize(np.array([5]), 0.5, 0, -128, 127).item()

    assert half() == 3
    with fixedpoint.requantization("FP32_ROUND_EVEN"):
        assert half() == 2
        with fixedpoint.requantization("TFLITE_DOUBLE"):
            assert half() == 3
        assert half() == 2
    assert half() == 3


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_quantize_and_back(rng, dtype):
    info = np.iinfo(dtype)
    q = Quantization(0.05, 3 if dtype != np.int16 else 0)
    integers = np.arange(info.min, info.max + 1, 7).astype(dtype)
    np.testing.assert_array_equal(fixedpoint.quantize(fixedpoint.dequantize(integers, q), q, np.dtype(dtype)), integers)
    assert fixedpoint.quantize(np.array([1e9, -1e9]), q, np.dtype(dtype)).tolist() == [info.max, info.min]


def test_quantize_per_channel():
    q = Quantization([0.1, 10.0], [0, 5], axis=1)
    integers = fixedpoint.quantize(np.array([[1.0, 100.0], [-0.25, -30.0]]), q, np.dtype(np.int8))
    assert integers.tolist() == [[10, 15], [-3, 2]]
    np.testing.assert_allclose(fixedpoint.dequantize(integers, q), [[1.0, 100.0], [-0.3, -30.0]], rtol=1e-6)


def test_activation_bounds():
    output = TensorType((1,), np.int8, Quantization(0.1, -28))
    assert fixedpoint.activation_bounds(-math.inf, math.inf, output) == (-128, 127)
    assert fixedpoint.activation_bounds(0.0, math.inf, output) == (-28, 127)
    assert fixedpoint.activation_bounds(0.0, 6.0, output) == (-28, 32)
    assert fixedpoint.activation_bounds(-50.0, 50.0, output) == (-128, 127)
    with pytest.raises(ShapeError, match="scale"):
        fixedpoint.activation_bounds(0.0, 6.0, TensorType((1,), np.int8))

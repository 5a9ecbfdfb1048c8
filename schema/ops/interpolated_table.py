"""Functions of one int16 number as tables of 513 values, with straight lines between them.

Tables: LUTPopulateInt16 and LUTLookup of tensorflow/lite/kernels/internal/common.h. LOGISTIC and TANH have a table of
their own, of the logistic function at multiples of 1/24 (integer_ops/logistic.h, integer_ops/tanh.h).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from schema.fixedpoint import power_of_two, round_half_away
from schema.graph import TensorType
from schema.ops.dtypes import per_tensor, require_output

Function = Callable[[np.ndarray], np.ndarray]
Real = np.floating
STEPS = 512
LOW, HIGH = -(2**15), 2**15 - 1
OUTPUT_SCALE = 1 / 32768
"""Of LOGISTIC, TANH and SOFTMAX."""


def table_between(function: Function, first: Real, last: Real, output_scale: Real) -> np.ndarray:
    """int64 (513,): the function at 513 points from `first` to `last`, in steps of the output's scale.

    Each value is moved by half of the error that a straight line to the next one makes in the middle. All is computed
    in the float type of the arguments. An infinite value is the largest there is.
    """
    real = type(first)
    count = np.arange(STEPS + 1).astype(real)
    step = (last - first) / real(STEPS)
    inverse = real(HIGH - LOW + 1) / (output_scale * real(HIGH) - output_scale * real(LOW))
    with np.errstate(all="ignore"):
        points = function(first + count * step) * inverse
        middles = function(first + count[:-1] * step + step / real(2)) * inverse
        samples = round_half_away(points)
        on_the_line = round_half_away((points[1:] + samples[:-1]) / real(2))
        correction = round_half_away((on_the_line - round_half_away(middles)) / real(2))
        samples[:-1] -= np.where(np.isposinf(samples[:-1]), 0, correction)
        samples[-1] = round_half_away(function(np.array([last])) * inverse)[0]
        return np.clip(np.nan_to_num(samples, posinf=HIGH), LOW, HIGH).astype(np.int64)


def table(op: str, function: Function, x: TensorType, output: TensorType) -> np.ndarray:
    """table_between all numbers of x. function: float32 to float32. What it is not defined for is the lowest output."""
    input_scale, _ = per_tensor(op, "input", x)
    output_scale, _ = per_tensor(op, "output", output)
    lowest = np.float32(LOW) * output_scale

    def total(real: np.ndarray) -> np.ndarray:
        result = np.asarray(function(real), np.float32)
        return np.where(np.isnan(result) | np.isneginf(result), lowest, result)

    return table_between(total, input_scale * np.float32(LOW), input_scale * np.float32(HIGH), output_scale)


def look_up(x: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """int64: the value on the line between the two entries around each int16 number."""
    x = np.asarray(x, np.int64)
    index, offset = STEPS // 2 + (x >> 7), x & 0x7F
    base = entries[index]
    return base + (((entries[index + 1] - base) * offset + 64) >> 7)


@cache
def logistic_table() -> np.ndarray:
    """int64 (256,): 2^16 times the logistic function at i / 24, raised by half of what lines miss between entries."""
    at = 65536 / (1 + np.exp(-np.arange(0, 256.5, 0.5) / 24))
    points, middles, nexts = at[:-1:2], at[1::2], at[2::2]
    entries = np.rint(points + (middles - (points + nexts) / 2) / 2).astype(np.int64)
    entries[-1] = 65535  # stands for all that follows
    return entries


def in_table_units(op: str, x: np.ndarray, given: TensorType, output: TensorType, most_shift: int) -> np.ndarray:
    """x in units of 1/(3 * 4096), for tables that end at 10.7.

    A scale of 2**(shift - 12), shift <= most_shift, is exact, or taken to be (fixedpoint.power_of_two); others have a
    multiplier of 15 bits.
    """
    scale, _ = per_tensor(op, "input", given)
    require_output(op, output, OUTPUT_SCALE, 0)
    exponent = power_of_two(scale)
    if exponent is not None and 0 <= exponent + 12 <= most_shift:
        return x.astype(np.int64) * (3 << (exponent + 12))
    multiplier, right = float(scale) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and right <= 30:
        multiplier, right = multiplier * 2.0, right + 1
    whole = int(np.int64(min(multiplier, 2.0**62)).astype(np.int16))
    half = 1 << (right - 1) if right > 0 else 0
    return (x.astype(np.int64) * whole + half) >> right


def logistic(x: np.ndarray) -> np.ndarray:
    """Of numbers in table units; the result has 15 fractional bits."""
    magnitude = np.abs(x)
    index, part = magnitude >> 9, magnitude & 0x1FF
    entries = logistic_table()
    low, high = (entries[np.minimum(index + i, 255)] for i in (0, 1))
    result = np.where(index >= 255, 0x7FFF << 10, (low << 9) + part * (high - low))
    result = np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return (result >> 10).astype(np.int16)


def tanh(x: np.ndarray) -> np.ndarray:
    """Of numbers in table units, by tanh(x) = 2 logistic(2x) - 1; the result has 15 fractional bits."""
    magnitude = np.abs(x)
    index, part = magnitude >> 8, magnitude & 0xFF
    entries = logistic_table()
    low, high = (entries[np.minimum(index + i, 255)] for i in (0, 1))
    result = np.where(index >= 255, 0xFFFF << 8, (low << 8) + part * (high - low))
    result = np.where(x >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1)
    return (result >> 8).astype(np.int16)

"""HARD_SWISH: x * min(max(x + 3, 0), 6) / 6.

int8: a pipeline of 16-bit numbers (TFLite reference/hard_swish.h). The output's scale must be more than 1/128 of the
input's.
"""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.ops.base import require
from schema.ops.dtypes import per_tensor
from schema.ops.elementwise import Unary

RELUISH_SCALE = np.float32(3.0 / 32768.0)
"""The scale in which x is compared with -3 and 3: the full range of int16."""


class HardSwish(Unary):
    name = "HARD_SWISH"

    @classmethod
    def compute(cls, x, attributes):
        return x * np.clip(x + 3, 0, 6) / 6

    @classmethod
    def quantized(cls, x, attributes, given, output):
        scale, zero_point = per_tensor(cls.name, "input", given)
        output_scale, output_zero = per_tensor(cls.name, "output", output)
        fine_scale = np.float32(1 / 128) * scale
        multiplier, exponent = _multiplier16(fine_scale / output_scale)
        require(exponent <= 0, f"output scale {output_scale} is too fine for input scale {scale}")
        fine = (x.astype(np.int64) - zero_point) << 7
        unshifted = _high_multiply16(fine, multiplier)
        gate = _gate(fine, fine_scale)
        product = np.where((gate == -32768) & (unshifted == -32768), 32767, _divide_towards_zero(gate * unshifted))
        return np.clip(_divide_by_pot16(product, -exponent) + output_zero, -128, 127).astype(x.dtype)


def _gate(fine: np.ndarray, fine_scale: np.float32) -> np.ndarray:
    """min(max(x + 3, 0), 6) / 6 with 15 fractional bits."""
    multiplier, exponent = _multiplier16(fine_scale / RELUISH_SCALE)
    gate = fixedpoint.saturate(fine << max(exponent - 1, 0), np.int16)
    gate = _high_multiply16(gate, multiplier)
    gate = fixedpoint.saturate(gate << min(max(exponent, 0), 1), np.int16)
    return (fixedpoint.rounding_divide_by_pot(gate, max(-exponent, 0)) + 32768) >> 1


def _multiplier16(real: np.float32) -> tuple[int, int]:
    """As quantize_multiplier, with 15 bits (DownScaleInt32ToInt16Multiplier)."""
    q31, shift = fixedpoint.quantize_multiplier(float(real))
    return min((q31 + (1 << 15)) >> 16, 32767), shift


def _high_multiply16(a: np.ndarray, multiplier: int) -> np.ndarray:
    """a * multiplier / 2**15 to the nearest integer."""
    return (a * multiplier + (1 << 14)) >> 15


def _divide_towards_zero(product: np.ndarray) -> np.ndarray:
    return np.sign(product) * (np.abs(product) >> 15)


def _divide_by_pot16(x: np.ndarray, exponent: int) -> np.ndarray:
    """Rounding division of int16 numbers, whose mask has no bits beyond the 16th."""
    if exponent < 16:
        return fixedpoint.rounding_divide_by_pot(x, exponent)
    return np.where(x >= 0, 1, -1)

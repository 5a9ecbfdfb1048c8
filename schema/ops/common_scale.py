"""Two quantized operands brought to one scale, so that they can be added (TFLite kernels/add.cc)."""

from __future__ import annotations

import math

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.dtypes import WIDE, per_tensor

LEFT_SHIFT = 20
"""int8 operands gain this many bits before they are scaled down."""
WIDE_LEFT_SHIFT = 15
"""int16 operands do."""


def powers_of_two(op: str, given: tuple[TensorType, TensorType], output: TensorType) -> tuple[int, int] | None:
    """How many bits to shift two int16 operands right so that they are in steps of the output, where all three scales
    are powers of two and one of the operands has the output's; else None.
    """
    parts = [math.frexp(float(per_tensor(op, "operand", t)[0])) for t in (*given, output)]
    if output.dtype not in WIDE or any(fraction != 0.5 for fraction, _ in parts):
        return None
    (_, a), (_, b), (_, out) = parts
    shifts = out - a, out - b
    return shifts if min(shifts) == 0 else None


def shift_right(a: np.ndarray, b: np.ndarray, shifts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    a, b = (fixedpoint.rounding_divide_by_pot(x, min(s, 31)) for x, s in zip((a, b), shifts, strict=True))
    return a, b


def to_common_scale(
    op: str, a: np.ndarray, b: np.ndarray, given: tuple[TensorType, TensorType], left_shift: int | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """(a, b, scale): int32 values in units of `scale`, which is twice the larger input scale over 2**left_shift."""
    if left_shift is None:
        left_shift = WIDE_LEFT_SHIFT if given[0].dtype in WIDE else LEFT_SHIFT
    (scale_a, zero_a), (scale_b, zero_b) = (per_tensor(op, "input", t) for t in given)
    twice = 2 * float(max(scale_a, scale_b))
    scaled = [
        fixedpoint.multiply_by_real((x.astype(np.int64) - zero) << left_shift, float(scale) / twice)
        for x, scale, zero in ((a, scale_a, zero_a), (b, scale_b, zero_b))
    ]
    return scaled[0], scaled[1], twice / (1 << left_shift)


def from_scale(op: str, x: np.ndarray, scale: float, output: TensorType, bounds: tuple[int, int]) -> np.ndarray:
    """int32 values in units of `scale` to the output's integers, clamped to `bounds`."""
    output_scale, zero_point = per_tensor(op, "output", output)
    result = fixedpoint.multiply_by_real(x, scale / float(output_scale)) + zero_point
    return np.clip(result, *bounds).astype(output.dtype)

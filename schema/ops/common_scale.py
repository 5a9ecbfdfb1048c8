"""Two quantized operands brought to one scale, so that they can be added (TFLite kernels/add.cc)."""

from __future__ import annotations

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.dtypes import per_tensor

LEFT_SHIFT = 20
"""int8 operands gain this many bits before they are scaled down."""


def to_common_scale(
    op: str, a: np.ndarray, b: np.ndarray, given: tuple[TensorType, TensorType], left_shift: int = LEFT_SHIFT
) -> tuple[np.ndarray, np.ndarray, float]:
    """(a, b, scale): int32 values in units of `scale`, which is twice the larger input scale over 2**left_shift."""
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

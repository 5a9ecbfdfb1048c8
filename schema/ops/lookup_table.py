"""Functions of one int8 number as tables of 256 results of the float function (TFLite LUTPopulate, common.h)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schema import fixedpoint
from schema.graph import TensorType
from schema.ops.dtypes import per_tensor

Function = Callable[[np.ndarray], np.ndarray]
"""float32 to float32, each operation rounded to float32 as a correctly rounded library does."""


def table(op: str, function: Function, x: TensorType, output: TensorType) -> np.ndarray:
    """int8 (256,): the output for input -128, -127, ... 127. NaN is taken to be minus infinity."""
    input_scale, input_zero = per_tensor(op, "input", x)
    output_scale, output_zero = per_tensor(op, "output", output)
    real = input_scale * (np.arange(-128, 128) - input_zero).astype(np.float32)
    with np.errstate(all="ignore"):
        result = np.asarray(function(real), np.float32)
        scaled = fixedpoint.round_half_away(result * (np.float32(1) / output_scale)) + np.float32(output_zero)
    return np.clip(np.nan_to_num(scaled, nan=-np.inf), -128, 127).astype(np.int8)


def look_up(x: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """entries[x + 128] for each int8 x."""
    return entries[x.astype(np.intp) + 128]
